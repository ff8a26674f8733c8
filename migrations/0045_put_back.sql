-- Which installation a database is, for whoever asks a gateway; where it stood when a gateway last looked (cluster, database, time line); and whether it is one of several cells.
alter table installation
  add column id uuid not null default gen_random_uuid(),
  add column stands_on text,
  add column in_cells boolean not null default false;

-- Set while nobody knows whether another cell has the merchant: the database was put back to an earlier moment (docs/operating-moves.md).
alter table merchant_moves add column put_back_at timestamptz;
