-- When a gateway that writes with the key was last seen: what it made needs the key for as long after that as it is kept.
alter table key_checks add column written_at timestamptz;
