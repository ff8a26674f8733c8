-- Whose place it is: of each token a process knows the newest, so that who comes with one password from many networks pushes out nobody else's.
-- Rows of before are kept anew when their token comes again.
alter table known_places add column token_id uuid;
