-- What a proxy before several cells knows a token by: its plain SHA-256. Only of tokens that hold 128 bits of chance, which nobody finds by trying; null
-- for all others, and for those that were not sent since this column is there.
alter table access_tokens add column route_hash bytea;
