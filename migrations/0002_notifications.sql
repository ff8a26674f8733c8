-- Notifications: who is told (endpoints), what is owed to each (deliveries), and every attempt to tell it.

-- An event waits until it has been turned into deliveries. A pending state that became final before it could be told is superseded.
alter table events add column fan_out text check (fan_out in ('done', 'superseded'));
create index events_waiting on events (recorded_at) where fan_out is null;

-- `webhook` is called; `cursor` is read by `tollgate listen`; `request` stands for the notificationUrl of single requests, one a channel.
create table endpoints (
  merchant_id     uuid not null,
  id              uuid not null,
  kind            text not null check (kind in ('webhook', 'cursor', 'request')),
  channel_id      uuid,  -- absent = all channels of the merchant
  name            text,
  url             text,
  types           text[] not null default '{PAYMENT,REGISTRATION}',
  fields          text not null default 'all' check (fields in ('all', 'withoutCustomerData')),
  wrapper         text not null default 'none' check (wrapper in ('none', 'json', 'plain')),
  sealed_secrets  bytea not null,  -- one or two: two are valid at once while a receiver changes from one to the other
  alert_address   text,
  state           text not null check (state in ('inactive', 'active', 'disabled', 'deleted')),
  emitted         bigint not null default 0,  -- the position of the newest delivery: counted apart from the deliveries themselves
  created_at      timestamptz not null,
  activated_at    timestamptz,  -- real time, as recorded_at of events: an endpoint is owed what was recorded from then on
  primary key (merchant_id, id),
  check ((kind = 'webhook') = (url is not null)),
  check (kind <> 'request' or channel_id is not null)
);
create unique index endpoints_of_requests on endpoints (merchant_id, channel_id) where kind = 'request' and state <> 'deleted';
create unique index endpoints_by_name on endpoints (merchant_id, name) where name is not null and state <> 'deleted';

-- One row is one thing that one endpoint must be told. It ends acknowledged or given up, never otherwise.
create table deliveries (
  merchant_id     uuid not null,
  endpoint_id     uuid not null,
  position        bigint not null,  -- 1, 2, 3 … without gaps
  notification_id uuid not null,    -- the same at every attempt and replay, so that a receiver can drop repeats
  sequence        bigint not null,  -- position of the first delivery of this notification: a higher one is newer
  payment_id      uuid not null,
  event_sequence  smallint not null,
  root_id         uuid not null,
  url             text,             -- notificationUrl of a single request
  replay          boolean not null default false,
  state           text not null default 'scheduled' check (state in ('scheduled', 'acknowledged', 'given up')),
  attempts        integer not null default 0,
  emitted_at      timestamptz not null,
  settled_at      timestamptz,
  due_at          timestamptz not null,
  leased_until    timestamptz,
  primary key (merchant_id, endpoint_id, position)
) with (fillfactor = 75);  -- taking a lease changes no indexed column: there should be room for the new version beside the old one
-- An event makes one delivery for an endpoint, whoever fans it out.
create unique index deliveries_once on deliveries (merchant_id, endpoint_id, payment_id, event_sequence) where not replay;
create index deliveries_due on deliveries (merchant_id, endpoint_id, due_at, position) where state = 'scheduled';
create index deliveries_of_chain on deliveries (merchant_id, endpoint_id, root_id, position) where state = 'scheduled';

create table delivery_attempts (
  merchant_id  uuid not null,
  endpoint_id  uuid not null,
  position     bigint not null,
  attempt      integer not null,
  attempted_at timestamptz not null,
  milliseconds integer not null,
  status       smallint,  -- absent when no answer came; then `failure` says why
  failure      text,
  answer       text not null,  -- first bytes of what was answered
  acknowledged boolean not null,
  primary key (merchant_id, endpoint_id, position, attempt)
);
