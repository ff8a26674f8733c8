-- The bank of two cells may name one transaction to both, and a claim holds within one database. When a merchant moves to the cell where another payment has the
-- transaction, its own claim stays where it was: it is contested there, and nobody else of that cell may have it either.
alter table claimed_transactions add column contested boolean not null default false;
