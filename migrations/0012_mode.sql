-- What the database was made for. A process of another mode would open doors that do not belong there: the sandbox's public token and its movable
-- clock on live merchants. So it is written once, when the database is made, and never changes.
create table installation (
  mode text not null constraint installation_mode check (mode in ('sandbox', 'live')),
  made_at timestamptz not null,
  single boolean primary key default true constraint installation_single check (single)
);
