-- Whose place it is: of each token the newest are kept, so that who comes with one password from many networks pushes out nobody else's, and fills no table.
-- Rows of before are kept anew when their token comes again.
alter table known_places add column token_id uuid;
create index known_places_by_token on known_places (token_id, seen_at);
