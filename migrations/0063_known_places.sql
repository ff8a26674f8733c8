-- From where a right password has come: it need not wait there when others guess at its user, in any process, and after any start. Only keyed hashes of tokens with networks.
create table known_places (
  hash bytea primary key,
  seen_at timestamptz not null
);
create index known_places_by_time on known_places (seen_at);
