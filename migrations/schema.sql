-- Written by `npm run generate` from a migrated database: the sum of all migrations, to be read, never run by the gateway.

CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'rows of % are never changed or taken out', tg_table_name;
end
$function$;

CREATE OR REPLACE FUNCTION public.refuse_elsewhere()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if current_setting('tollgate.forgets', true) is distinct from tg_argv[0] then
    raise exception using errcode = 'TG503', message = 'the merchant ' || tg_argv[0] || ' is served elsewhere';
  end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.refuse_left()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  owner uuid;
begin
  if tg_op <> 'DELETE' and tg_argv[0] = 'owner_id' then owner := new.owner_id;
  elsif tg_op <> 'DELETE' then owner := new.merchant_id;
  elsif tg_argv[0] = 'owner_id' then owner := old.owner_id;
  else owner := old.merchant_id;
  end if;
  if exists (select from merchant_moves where merchant_id = owner and not here and state <> 'frozen' and put_back_at is null)
     and nullif(current_setting('tollgate.forgets', true), '')::uuid is distinct from owner then
    raise exception using errcode = 'TG503', message = 'the merchant ' || replace(owner::text, '-', '') || ' is served elsewhere';
  end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$function$;

CREATE OR REPLACE FUNCTION public.wake_deliveries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  chain record;
  goes_on boolean;
begin
  for chain in
    select distinct c.merchant_id, c.endpoint_id, c.root_id from changed c
     where not c.behind and (c.state <> 'scheduled' or (c.attempts >= 8 and c.leased_until is null))
       and exists (select from deliveries d where d.merchant_id = c.merchant_id and d.endpoint_id = c.endpoint_id and d.root_id = c.root_id and d.state = 'scheduled' and d.behind)
       and exists (select from endpoints e where e.merchant_id = c.merchant_id and e.id = c.endpoint_id and e.state = 'active')
       and not exists (select from merchant_moves m where m.merchant_id = c.merchant_id and m.direction = 'arriving' and not m.here)
     order by c.merchant_id, c.endpoint_id, c.root_id
  loop
    -- On past those that keep nobody waiting: tried so often already, or ended at this moment.
    loop
      update deliveries d set behind = false
        from (select merchant_id, endpoint_id, position from deliveries
               where merchant_id = chain.merchant_id and endpoint_id = chain.endpoint_id and root_id = chain.root_id and state = 'scheduled' and behind
               order by position limit 1) first
       where d.merchant_id = first.merchant_id and d.endpoint_id = first.endpoint_id and d.position = first.position
      returning d.state <> 'scheduled' or (d.attempts >= 8 and d.leased_until is null) into goes_on;
      exit when not found or not goes_on;
    end loop;
  end loop;
  return null;
end
$function$;

create table access_tokens (
  token_hash bytea not null,
  id uuid not null,
  merchant_id uuid,
  label text not null,
  entities uuid[] not null,
  legacy boolean not null,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  lookup_key text,
  route_hash bytea,
  constraint access_tokens_pkey PRIMARY KEY (token_hash),
  constraint access_tokens_id_key UNIQUE (id)
);
CREATE INDEX access_tokens_by_entity ON access_tokens USING gin (entities);

create table answered_challenges (
  hash bytea not null,
  ends_at timestamp with time zone not null,
  constraint answered_challenges_pkey PRIMARY KEY (hash)
);
CREATE INDEX answered_challenges_by_end ON answered_challenges USING btree (ends_at);

create table answers (
  merchant_id uuid not null,
  payment_id uuid not null,
  result text not null,
  approved boolean not null,
  reply text not null,
  body text not null,
  answered_at timestamp with time zone not null,
  constraint answers_pkey PRIMARY KEY (merchant_id, payment_id)
);
CREATE INDEX answers_host_reference ON answers USING btree (merchant_id, "substring"(reply, '"hostReference":"([^"]+)"'::text)) WHERE (reply ~~ '%"hostReference"%'::text);
CREATE INDEX answers_settled_on ON answers USING btree (merchant_id, "substring"(reply, '"settledOn":"([^"]+)"'::text)) WHERE (reply ~~ '%"settledOn"%'::text);

create table archived_payments (
  merchant_id uuid not null,
  payment_id uuid not null,
  root_id uuid not null,
  archive_id uuid not null,
  constraint archived_payments_pkey PRIMARY KEY (merchant_id, payment_id)
);
CREATE INDEX archived_payments_by_archive ON archived_payments USING btree (archive_id, merchant_id, root_id);

create table archives (
  id uuid not null,
  name text not null,
  before timestamp with time zone not null,
  began_at timestamp with time zone not null,
  proof bytea,
  in_file bigint not null default 0,
  chains bigint not null default 0,
  payments bigint not null default 0,
  lines bigint not null default 0,
  ended_at timestamp with time zone,
  constraint archives_pkey PRIMARY KEY (id),
  constraint archives_count CHECK (((in_file >= 0) AND (chains >= 0) AND (payments >= 0) AND (lines >= 0)))
);
CREATE UNIQUE INDEX archives_by_name ON archives USING btree (name);
CREATE UNIQUE INDEX archives_open ON archives USING btree ((true)) WHERE (ended_at IS NULL);

create table audit (
  sequence bigint not null,
  recorded_at timestamp with time zone not null,
  actor_kind text not null,
  actor text not null,
  address text not null,
  action text not null,
  entity_id uuid,
  subject text not null,
  result text not null,
  details text not null,
  hash bytea not null,
  constraint audit_pkey PRIMARY KEY (sequence),
  constraint audit_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['token'::text, 'user'::text, 'commandLine'::text, 'gateway'::text, 'stranger'::text]))),
  constraint audit_result_check CHECK ((result = ANY (ARRAY['done'::text, 'refused'::text]))),
  constraint audit_sequence_check CHECK ((sequence > 0)),
  constraint audit_sequence_counts CHECK ((sequence < '9007199254740991'::bigint))
);
CREATE INDEX audit_by_time ON audit USING btree (recorded_at);

create table audit_head (
  single boolean not null default true,
  sequence bigint not null,
  proof bytea,
  constraint audit_head_pkey PRIMARY KEY (single),
  constraint audit_head_single_check CHECK (single)
);

create table beats (
  source text not null,
  id uuid not null,
  beat_at timestamp with time zone not null,
  constraint beats_pkey PRIMARY KEY (source)
);

create table capture_files (
  acquirer text not null,
  sequence integer not null,
  day date not null,
  name text not null,
  content text not null,
  made_at timestamp with time zone not null,
  written_at timestamp with time zone,
  constraint capture_files_pkey PRIMARY KEY (acquirer, sequence),
  constraint capture_files_sequence_check CHECK ((sequence > 0))
);

create table captures (
  merchant_id uuid not null,
  payment_id uuid not null,
  capture_id uuid not null,
  constraint captures_pkey PRIMARY KEY (merchant_id, payment_id)
);

create table case_notes (
  merchant_id uuid not null,
  case_id uuid not null,
  id uuid not null,
  written_at timestamp with time zone not null,
  written_by text not null,
  kind text not null,
  text text not null,
  constraint case_notes_pkey PRIMARY KEY (merchant_id, case_id, id),
  constraint case_notes_kind_check CHECK ((kind = ANY (ARRAY['taken'::text, 'released'::text, 'note'::text])))
);

create unlogged table challenge_secrets (
  merchant_id uuid not null,
  payment_id uuid not null,
  sealed bytea not null,
  erase_after timestamp with time zone not null,
  constraint challenge_secrets_pkey PRIMARY KEY (merchant_id, payment_id)
) with (autovacuum_enabled=false);
alter table challenge_secrets alter column merchant_id set statistics 0;
alter table challenge_secrets alter column payment_id set statistics 0;
alter table challenge_secrets alter column sealed set statistics 0;
alter table challenge_secrets alter column erase_after set statistics 0;

create table chargeback_lines (
  merchant_id uuid not null,
  report text not null,
  line integer not null,
  payment_id uuid not null,
  constraint chargeback_lines_pkey PRIMARY KEY (merchant_id, report, line),
  constraint chargeback_lines_line_check CHECK ((line > 0))
);

create table checkout_attempts (
  merchant_id uuid not null,
  checkout_id uuid not null,
  attempt smallint not null,
  subject_id uuid not null,
  form bytea not null,
  made_at timestamp with time zone not null,
  constraint checkout_attempts_pkey PRIMARY KEY (merchant_id, checkout_id, attempt),
  constraint checkout_attempts_count CHECK ((attempt > 0))
);

create table checkouts (
  merchant_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  token_id uuid not null,
  sealed bytea not null,
  fingerprint bytea,
  script_build text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint checkouts_pkey PRIMARY KEY (merchant_id, id)
);
alter table checkouts alter column sealed set statistics 0;

create table claimed_transactions (
  connector text not null,
  brand text not null,
  transaction_id text not null,
  merchant_id uuid not null,
  payment_id uuid not null,
  contested boolean not null default false,
  constraint claimed_transactions_pkey PRIMARY KEY (connector, brand, transaction_id)
);
CREATE INDEX claimed_transactions_of_merchant ON claimed_transactions USING btree (merchant_id);

create table clearing_files (
  hash bytea not null,
  kind text not null,
  name text not null,
  lines integer not null,
  received_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  constraint clearing_files_pkey PRIMARY KEY (hash)
);

create table clearing_lines (
  hash bytea not null,
  line integer not null,
  outcome text not null,
  subject text not null,
  settled_at timestamp with time zone not null,
  constraint clearing_lines_pkey PRIMARY KEY (hash, line),
  constraint clearing_lines_line_check CHECK ((line > 0)),
  constraint clearing_lines_outcome_check CHECK ((outcome = ANY (ARRAY['recorded'::text, 'known'::text, 'noted'::text, 'refused'::text])))
);

create table closing_sums (
  merchant_id uuid not null,
  archive_id uuid not null,
  channel_id uuid not null,
  day date not null,
  mode text not null,
  currency text not null,
  debit text not null,
  credit text not null,
  kind text not null,
  count bigint not null,
  matched bigint not null,
  amount bigint not null,
  constraint closing_sums_pkey PRIMARY KEY (merchant_id, day, archive_id, channel_id, mode, currency, debit, credit, kind),
  constraint closing_sums_count CHECK (((count > 0) AND ((matched >= 0) AND (matched <= count)) AND (amount > 0)))
);

create table collected_captures (
  merchant_id uuid not null,
  payment_id uuid not null,
  acquirer text not null,
  said text not null,
  collected_at timestamp with time zone not null,
  sequence integer,
  line integer,
  outcome text,
  constraint collected_captures_pkey PRIMARY KEY (merchant_id, payment_id),
  constraint collected_captures_check CHECK (((sequence IS NULL) = (line IS NULL))),
  constraint collected_captures_outcome_check CHECK ((outcome = ANY (ARRAY['accepted'::text, 'rejected'::text])))
);
CREATE UNIQUE INDEX collected_captures_by_place ON collected_captures USING btree (acquirer, sequence, line) WHERE (sequence IS NOT NULL);
CREATE INDEX collected_captures_waiting ON collected_captures USING btree (acquirer, collected_at) WHERE (sequence IS NULL);

create table continuations (
  merchant_id uuid not null,
  payment_id uuid not null,
  step text not null,
  sealed bytea not null,
  mark text,
  deadline timestamp with time zone not null,
  constraint continuations_pkey PRIMARY KEY (merchant_id, payment_id)
);
alter table continuations alter column sealed set statistics 0;

create table credentials (
  machine text not null,
  name text not null,
  fingerprint text not null,
  seen_at timestamp with time zone not null,
  constraint credentials_pkey PRIMARY KEY (machine, name)
);

create table day_totals (
  acquirer text not null,
  day date not null,
  terminal text not null,
  currency text not null,
  ours text not null,
  trace text not null,
  made_at timestamp with time zone not null,
  attempts integer not null default 0,
  theirs text,
  balance text,
  answered_at timestamp with time zone,
  constraint day_totals_pkey PRIMARY KEY (acquirer, day, terminal, currency),
  constraint day_totals_balance_check CHECK ((balance = ANY (ARRAY['in'::text, 'out'::text, 'unknown'::text])))
);

create table deliveries (
  merchant_id uuid not null,
  endpoint_id uuid not null,
  "position" bigint not null,
  notification_id uuid not null,
  sequence bigint not null,
  payment_id uuid not null,
  event_sequence smallint not null,
  root_id uuid not null,
  url text,
  replay boolean not null default false,
  state text not null default 'scheduled'::text,
  attempts integer not null default 0,
  emitted_at timestamp with time zone not null,
  settled_at timestamp with time zone,
  due_at timestamp with time zone not null,
  leased_until timestamp with time zone,
  behind boolean not null default false,
  constraint deliveries_pkey PRIMARY KEY (merchant_id, endpoint_id, "position"),
  constraint deliveries_state_check CHECK ((state = ANY (ARRAY['scheduled'::text, 'acknowledged'::text, 'given up'::text])))
) with (fillfactor=75);
CREATE INDEX deliveries_behind ON deliveries USING btree (merchant_id, endpoint_id, root_id, "position") WHERE ((state = 'scheduled'::text) AND behind);
CREATE INDEX deliveries_free ON deliveries USING btree (merchant_id, endpoint_id, due_at, "position") WHERE ((state = 'scheduled'::text) AND (NOT behind));
CREATE INDEX deliveries_given_up ON deliveries USING btree (merchant_id, settled_at) WHERE (state = 'given up'::text);
CREATE INDEX deliveries_of_chain ON deliveries USING btree (merchant_id, endpoint_id, root_id, "position") WHERE (state = 'scheduled'::text);
CREATE UNIQUE INDEX deliveries_once ON deliveries USING btree (merchant_id, endpoint_id, payment_id, event_sequence) WHERE (NOT replay);
CREATE INDEX deliveries_replayed_event ON deliveries USING btree (merchant_id, payment_id, endpoint_id, event_sequence, "position") WHERE replay;

create table delivery_attempts (
  merchant_id uuid not null,
  endpoint_id uuid not null,
  "position" bigint not null,
  attempt integer not null,
  attempted_at timestamp with time zone not null,
  milliseconds integer not null,
  status smallint,
  failure text,
  answer text not null,
  acknowledged boolean not null,
  constraint delivery_attempts_pkey PRIMARY KEY (merchant_id, endpoint_id, "position", attempt)
);

create table due_work (
  kind text not null,
  merchant_id uuid not null,
  subject_id uuid not null,
  due_at timestamp with time zone not null,
  leased_until timestamp with time zone,
  attempts integer not null default 0,
  details jsonb not null default '{}'::jsonb,
  generation integer not null default 0,
  side text not null default ''::text,
  constraint due_work_pkey PRIMARY KEY (kind, merchant_id, subject_id)
);
alter table due_work alter column details set statistics 0;
CREATE INDEX due_work_by_kind ON due_work USING btree (kind, due_at);
CREATE INDEX due_work_by_merchant ON due_work USING btree (kind, merchant_id, due_at);
CREATE INDEX due_work_by_side ON due_work USING btree (kind, side, due_at);
CREATE INDEX due_work_by_side_and_merchant ON due_work USING btree (kind, side, merchant_id, due_at);
CREATE INDEX due_work_by_time ON due_work USING btree (due_at);

create table endpoints (
  merchant_id uuid not null,
  id uuid not null,
  kind text not null,
  channel_id uuid,
  name text,
  url text,
  types text[] not null default '{PAYMENT,REGISTRATION}'::text[],
  fields text not null default 'all'::text,
  wrapper text not null default 'none'::text,
  sealed_secrets bytea not null,
  alert_address text,
  state text not null,
  emitted bigint not null default 0,
  created_at timestamp with time zone not null,
  activated_at timestamp with time zone,
  erased_acknowledged bigint not null default 0,
  erased_given_up bigint not null default 0,
  erased_before timestamp with time zone,
  constraint endpoints_pkey PRIMARY KEY (merchant_id, id),
  constraint endpoints_check CHECK (((kind = 'webhook'::text) = (url IS NOT NULL))),
  constraint endpoints_check1 CHECK (((kind <> 'request'::text) OR (channel_id IS NOT NULL))),
  constraint endpoints_fields_check CHECK ((fields = ANY (ARRAY['all'::text, 'withoutCustomerData'::text]))),
  constraint endpoints_kind_check CHECK ((kind = ANY (ARRAY['webhook'::text, 'cursor'::text, 'request'::text]))),
  constraint endpoints_state_check CHECK ((state = ANY (ARRAY['inactive'::text, 'active'::text, 'disabled'::text, 'deleted'::text]))),
  constraint endpoints_wrapper_check CHECK ((wrapper = ANY (ARRAY['none'::text, 'json'::text, 'plain'::text])))
);
alter table endpoints alter column sealed_secrets set statistics 0;
CREATE UNIQUE INDEX endpoints_by_name ON endpoints USING btree (merchant_id, name) WHERE ((name IS NOT NULL) AND (state <> 'deleted'::text));
CREATE UNIQUE INDEX endpoints_of_requests ON endpoints USING btree (merchant_id, channel_id) WHERE ((kind = 'request'::text) AND (state <> 'deleted'::text));

create table entities (
  id uuid not null,
  kind text not null,
  parent_id uuid,
  merchant_id uuid,
  name text not null,
  settings jsonb not null default '{}'::jsonb,
  clock_offset_ms bigint not null default 0,
  changed_at timestamp with time zone not null,
  constraint entities_pkey PRIMARY KEY (id),
  constraint entities_check CHECK (((kind = 'psp'::text) = (parent_id IS NULL))),
  constraint entities_check1 CHECK (((kind = ANY (ARRAY['merchant'::text, 'channel'::text])) = (merchant_id IS NOT NULL))),
  constraint entities_clock_offset_ms_check CHECK ((clock_offset_ms >= 0)),
  constraint entities_kind_check CHECK ((kind = ANY (ARRAY['psp'::text, 'division'::text, 'merchant'::text, 'channel'::text])))
);
CREATE INDEX entities_by_parent ON entities USING btree (parent_id);

create table events (
  merchant_id uuid not null,
  payment_id uuid not null,
  sequence smallint not null,
  type text not null,
  action text,
  channel_id uuid not null,
  root_id uuid not null,
  occurred_at timestamp with time zone not null,
  recorded_at timestamp with time zone not null,
  notified text,
  searched text,
  constraint events_pkey PRIMARY KEY (merchant_id, payment_id, sequence),
  constraint events_action_check CHECK ((action = ANY (ARRAY['CREATED'::text, 'UPDATED'::text, 'DELETED'::text]))),
  constraint events_notified_check CHECK ((notified = ANY (ARRAY['done'::text, 'superseded'::text]))),
  constraint events_searched_check CHECK ((searched = ANY (ARRAY['done'::text, 'superseded'::text]))),
  constraint events_type_check CHECK ((type = ANY (ARRAY['PAYMENT'::text, 'REGISTRATION'::text])))
);
CREATE INDEX events_not_notified ON events USING btree (recorded_at) WHERE (notified IS NULL);
CREATE INDEX events_not_notified_by_merchant ON events USING btree (merchant_id, recorded_at) WHERE (notified IS NULL);
CREATE INDEX events_not_searched ON events USING btree (recorded_at) WHERE (searched IS NULL);
CREATE INDEX events_not_searched_by_merchant ON events USING btree (merchant_id, recorded_at) WHERE (searched IS NULL);

create table exports (
  id uuid not null,
  asked_by text not null,
  asked_at timestamp with time zone not null,
  ends_at timestamp with time zone not null,
  merchants uuid[] not null,
  name text not null,
  source jsonb not null,
  state text not null default 'making'::text,
  place jsonb,
  records bigint not null default 0,
  total bigint,
  pieces integer not null default 0,
  bytes bigint not null default 0,
  constraint exports_pkey PRIMARY KEY (id),
  constraint exports_state_check CHECK ((state = ANY (ARRAY['making'::text, 'made'::text, 'tooLarge'::text])))
);
CREATE INDEX exports_of_merchants ON exports USING gin (merchants);

create table file_pieces (
  file_id uuid not null,
  number integer not null,
  content bytea not null,
  constraint file_pieces_pkey PRIMARY KEY (file_id, number)
);

create table form_scripts (
  hash text not null,
  name text not null,
  content text not null,
  made_at timestamp with time zone not null,
  constraint form_scripts_pkey PRIMARY KEY (hash)
);

create table idempotency_keys (
  merchant_id uuid not null,
  key_hash bytea not null,
  fingerprint bytea not null,
  payment_id uuid not null,
  recorded_at timestamp with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (merchant_id, key_hash)
);
CREATE INDEX idempotency_keys_by_time ON idempotency_keys USING btree (recorded_at);

create table installation (
  mode text not null,
  made_at timestamp with time zone not null,
  single boolean not null default true,
  id uuid not null default gen_random_uuid(),
  stands_on text,
  in_cells boolean not null default false,
  files_held boolean not null default false,
  files_released text[] not null default '{}'::text[],
  files_held_after text,
  constraint installation_pkey PRIMARY KEY (single),
  constraint installation_mode CHECK ((mode = ANY (ARRAY['sandbox'::text, 'live'::text]))),
  constraint installation_single CHECK (single)
);

create table journal (
  merchant_id uuid not null,
  payment_id uuid not null,
  line smallint not null,
  mode text not null,
  currency text not null,
  debit text not null,
  credit text not null,
  amount bigint not null,
  state text not null,
  booked_at timestamp with time zone not null,
  constraint journal_pkey PRIMARY KEY (merchant_id, payment_id, line),
  constraint journal_amount_check CHECK ((amount > 0)),
  constraint journal_check CHECK ((debit <> credit)),
  constraint journal_mode_check CHECK ((mode = ANY (ARRAY['internal'::text, 'external'::text, 'live'::text]))),
  constraint journal_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'posted'::text, 'voided'::text])))
);
CREATE INDEX journal_of_merchants ON journal USING btree (merchant_id, booked_at, payment_id) WHERE ((state = 'posted'::text) AND (('merchant'::text = debit) OR ('merchant'::text = credit)));

create table key_checks (
  name text not null,
  proof bytea not null,
  made_at timestamp with time zone,
  written_at timestamp with time zone,
  constraint key_checks_pkey PRIMARY KEY (name)
);

create table known_places (
  hash bytea not null,
  seen_at timestamp with time zone not null,
  token_id uuid,
  constraint known_places_pkey PRIMARY KEY (hash)
);
CREATE INDEX known_places_by_time ON known_places USING btree (seen_at);
CREATE INDEX known_places_by_token ON known_places USING btree (token_id, seen_at);

create table late_approvals (
  merchant_id uuid not null,
  payment_id uuid not null,
  reply text not null,
  heard_at timestamp with time zone not null,
  acknowledged_at timestamp with time zone,
  constraint late_approvals_pkey PRIMARY KEY (merchant_id, payment_id)
);

create table log_in_failures (
  minute timestamp with time zone not null,
  kind text not null,
  subject text not null,
  failures integer not null,
  proof bytea not null,
  constraint log_in_failures_pkey PRIMARY KEY (minute, kind, subject),
  constraint log_in_failures_kind_check CHECK ((kind = ANY (ARRAY['all'::text, 'address'::text, 'user'::text, 'credential'::text])))
);

create table merchant_moves (
  merchant_id uuid not null,
  direction text not null,
  state text not null,
  here boolean not null,
  other text not null,
  run integer not null,
  counted jsonb,
  changed_at timestamp with time zone not null,
  move_id uuid,
  accounts text[],
  put_back_at timestamp with time zone,
  steps integer not null default 0,
  held_after text,
  constraint merchant_moves_pkey PRIMARY KEY (merchant_id),
  constraint merchant_moves_direction CHECK ((direction = ANY (ARRAY['leaving'::text, 'arriving'::text])))
);

create table migrations (
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone not null,
  constraint migrations_pkey PRIMARY KEY (name)
);

create table operator_cases (
  merchant_id uuid not null,
  id uuid not null,
  kind text not null,
  subject text not null,
  details text not null,
  opened_at timestamp with time zone not null,
  closed_at timestamp with time zone,
  closed_by text,
  reason text,
  owner text,
  constraint operator_cases_pkey PRIMARY KEY (merchant_id, id),
  constraint operator_cases_check CHECK ((((closed_at IS NULL) = (closed_by IS NULL)) AND ((closed_at IS NULL) = (reason IS NULL))))
);
CREATE UNIQUE INDEX operator_cases_open ON operator_cases USING btree (merchant_id, kind, subject) WHERE (closed_at IS NULL);

create table order_files (
  merchant_id uuid not null,
  id uuid not null,
  account text not null,
  sequence integer not null,
  day date not null,
  name text not null,
  sealed bytea,
  made_at timestamp with time zone not null,
  written_at timestamp with time zone,
  constraint order_files_pkey PRIMARY KEY (merchant_id, id),
  constraint order_files_by_sequence UNIQUE (account, sequence),
  constraint order_files_check CHECK (((sealed IS NULL) = (written_at IS NOT NULL))),
  constraint order_files_sequence_check CHECK ((sequence > 0))
);
alter table order_files alter column sealed set statistics 0;

create table owed_files (
  owner_id uuid not null,
  source uuid not null,
  day date not null,
  form text not null,
  made_at timestamp with time zone not null,
  attempts integer not null default 0,
  failure text,
  records integer,
  file_id uuid,
  outcome text,
  ended_at timestamp with time zone,
  making_id uuid,
  part_id uuid,
  constraint owed_files_pkey PRIMARY KEY (owner_id, source, day, form),
  constraint owed_files_check CHECK (((outcome IS NULL) = (ended_at IS NULL))),
  constraint owed_files_form_check CHECK ((form = ANY (ARRAY['csv'::text, 'json'::text, 'xml'::text]))),
  constraint owed_files_outcome_check CHECK ((outcome = ANY (ARRAY['delivered'::text, 'givenUp'::text])))
);
CREATE INDEX owed_files_scheduled ON owed_files USING btree (owner_id, source, day) WHERE (outcome IS NULL);

create table passkeys (
  id text not null,
  staff_id uuid not null,
  name text not null,
  algorithm smallint not null,
  public_key bytea not null,
  counter bigint not null,
  made_at timestamp with time zone not null,
  used_at timestamp with time zone,
  constraint passkeys_pkey PRIMARY KEY (id)
);
CREATE INDEX passkeys_by_staff ON passkeys USING btree (staff_id);

create table payments (
  merchant_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  root_id uuid,
  reference_id uuid,
  payment_type text not null,
  brand text,
  amount bigint,
  currency text,
  mode text not null,
  connector text not null,
  merchant_transaction_id text,
  received_at timestamp with time zone not null,
  recorded_at timestamp with time zone not null,
  record text not null,
  token_id uuid,
  constraint payments_pkey PRIMARY KEY (merchant_id, id),
  constraint payments_amount_check CHECK (((amount >= 0) AND (amount <= '999999999999'::bigint))),
  constraint payments_check CHECK (((root_id IS NULL) = (reference_id IS NULL))),
  constraint payments_mode_check CHECK ((mode = ANY (ARRAY['internal'::text, 'external'::text, 'live'::text])))
);
CREATE INDEX payments_by_root ON payments USING btree (merchant_id, root_id) WHERE (root_id IS NOT NULL);
CREATE INDEX payments_by_time ON payments USING btree (merchant_id, received_at);
CREATE INDEX payments_by_transaction ON payments USING btree (merchant_id, merchant_transaction_id) WHERE (merchant_transaction_id IS NOT NULL);

create table pending_answers (
  merchant_id uuid not null,
  payment_id uuid not null,
  sealed bytea not null,
  constraint pending_answers_pkey PRIMARY KEY (merchant_id, payment_id)
);
alter table pending_answers alter column sealed set statistics 0;

create table receipts (
  merchant_id uuid not null,
  payment_id uuid not null,
  slip_id uuid not null,
  account text not null,
  key text not null,
  paid_on date not null,
  credited_on date,
  constraint receipts_pkey PRIMARY KEY (merchant_id, payment_id)
);
CREATE UNIQUE INDEX receipts_by_key ON receipts USING btree (account, key);

create table recovery_codes (
  staff_id uuid not null,
  hash bytea not null,
  constraint recovery_codes_pkey PRIMARY KEY (staff_id, hash)
);

create table redirects (
  merchant_id uuid not null,
  payment_id uuid not null,
  page_hash bytea not null,
  notice_hash bytea not null,
  session_hash bytea,
  made_at timestamp with time zone not null,
  constraint redirects_pkey PRIMARY KEY (merchant_id, payment_id)
);
CREATE UNIQUE INDEX redirects_by_notice ON redirects USING btree (merchant_id, notice_hash);
CREATE UNIQUE INDEX redirects_by_page ON redirects USING btree (merchant_id, page_hash);
CREATE INDEX redirects_by_time ON redirects USING btree (made_at);

create table refund_transfers (
  merchant_id uuid not null,
  payment_id uuid not null,
  account text not null,
  sealed bytea,
  ordered_at timestamp with time zone not null,
  sequence integer,
  line integer,
  constraint refund_transfers_pkey PRIMARY KEY (merchant_id, payment_id),
  constraint refund_transfers_check CHECK (((sequence IS NULL) = (line IS NULL)))
);
alter table refund_transfers alter column sealed set statistics 0;
CREATE INDEX refund_transfers_by_id ON refund_transfers USING btree (account, payment_id);
CREATE UNIQUE INDEX refund_transfers_by_place ON refund_transfers USING btree (account, sequence, line) WHERE (sequence IS NOT NULL);
CREATE INDEX refund_transfers_sealed ON refund_transfers USING btree (ordered_at) WHERE (sealed IS NOT NULL);
CREATE INDEX refund_transfers_waiting ON refund_transfers USING btree (account, ordered_at) WHERE (sequence IS NULL);

create table registrations (
  owner_id uuid not null,
  id uuid not null,
  channel_id uuid not null,
  payment_id uuid,
  usable boolean not null,
  mode text not null,
  brand text not null,
  record text not null,
  fingerprint bytea,
  erase_after date,
  network_transaction_id text,
  token_id uuid,
  key_fingerprint bytea,
  made_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  constraint registrations_pkey PRIMARY KEY (owner_id, id),
  constraint registrations_mode CHECK ((mode = ANY (ARRAY['internal'::text, 'external'::text, 'live'::text])))
);
CREATE INDEX registrations_with_hashes ON registrations USING btree (made_at) WHERE ((fingerprint IS NOT NULL) OR (key_fingerprint IS NOT NULL));

create table report_schedules (
  owner_id uuid not null,
  id uuid not null,
  settings jsonb not null,
  made_at timestamp with time zone not null,
  made_by text not null,
  ended_at timestamp with time zone,
  constraint report_schedules_pkey PRIMARY KEY (owner_id, id)
);

create table reporting_sources (
  source text not null,
  subscribed_at timestamp with time zone not null,
  constraint reporting_sources_pkey PRIMARY KEY (source)
);

create table request_records (
  merchant_id uuid not null,
  id uuid not null,
  recorded_at timestamp with time zone not null,
  method text not null,
  path text not null,
  status smallint not null,
  milliseconds integer not null,
  number text not null,
  entity_id uuid,
  token_id uuid,
  payment_id uuid,
  result text,
  content text not null,
  constraint request_records_pkey PRIMARY KEY (merchant_id, id)
);
CREATE INDEX request_records_by_time ON request_records USING btree (recorded_at, id);
CREATE INDEX request_records_of_payment ON request_records USING btree (merchant_id, payment_id) WHERE (payment_id IS NOT NULL);

create table return_files (
  merchant_id uuid not null,
  id uuid not null,
  hash bytea not null,
  account text not null,
  name text not null,
  number integer not null,
  made_on date,
  refused text,
  sealed bytea,
  received_at timestamp with time zone not null,
  series text not null default 'slips'::text,
  constraint return_files_pkey PRIMARY KEY (merchant_id, id),
  constraint return_files_hash_key UNIQUE (hash),
  constraint return_files_hash_check CHECK ((length(hash) = 32)),
  constraint return_files_series_check CHECK ((series = ANY (ARRAY['slips'::text, 'transfers'::text])))
);
alter table return_files alter column sealed set statistics 0;
CREATE UNIQUE INDEX return_files_by_number ON return_files USING btree (account, series, number) WHERE (number > 0);

create table risk_attempts (
  merchant_id uuid not null,
  kind text not null,
  subject bytea not null,
  attempted_at timestamp with time zone not null,
  payment_id uuid not null,
  amount bigint not null,
  currency text not null,
  constraint risk_attempts_pkey PRIMARY KEY (merchant_id, kind, subject, attempted_at, payment_id)
);
CREATE INDEX risk_attempts_by_time ON risk_attempts USING btree (attempted_at);

create table risk_entries (
  owner_id uuid not null,
  kind text not null,
  value text not null,
  id uuid not null,
  list text not null,
  shown text not null,
  network inet,
  lookup_key text,
  reason text not null,
  added_by text not null,
  added_at timestamp with time zone not null,
  ends_at timestamp with time zone,
  constraint risk_entries_pkey PRIMARY KEY (owner_id, kind, value),
  constraint risk_entries_card_check CHECK (((kind = 'card'::text) = (lookup_key IS NOT NULL))),
  constraint risk_entries_kind_check CHECK ((kind = ANY (ARRAY['email'::text, 'ip'::text, 'bin'::text, 'card'::text, 'customer'::text, 'device'::text]))),
  constraint risk_entries_list_check CHECK ((list = ANY (ARRAY['block'::text, 'allow'::text]))),
  constraint risk_entries_network_check CHECK (((kind = 'ip'::text) = (network IS NOT NULL)))
);
CREATE UNIQUE INDEX risk_entries_by_id ON risk_entries USING btree (id);
CREATE INDEX risk_entries_by_network ON risk_entries USING gist (network inet_ops) WHERE (network IS NOT NULL);

create table saved_filters (
  staff_id text not null,
  name text not null,
  query text not null,
  constraint saved_filters_pkey PRIMARY KEY (staff_id, name)
);

create table sealed_cards (
  merchant_id uuid not null,
  payment_id uuid not null,
  sealed bytea not null,
  erase_after date not null,
  constraint sealed_cards_pkey PRIMARY KEY (merchant_id, payment_id)
);
alter table sealed_cards alter column sealed set statistics 0;
CREATE INDEX sealed_cards_by_end ON sealed_cards USING btree (erase_after);

create table searched_payments (
  merchant_id uuid not null,
  payment_id uuid not null,
  root_id uuid not null,
  channel_id uuid not null,
  received_at timestamp with time zone not null,
  mode text not null,
  payment_type text not null,
  brand text,
  amount bigint,
  currency text,
  result text not null,
  outcome text not null,
  merchant_transaction_id text,
  invoice text,
  bin text,
  last_four text,
  email_hash bytea,
  email_key text,
  descriptor text,
  slip_number text,
  reference text,
  written_at timestamp with time zone,
  constraint searched_payments_pkey PRIMARY KEY (merchant_id, payment_id)
);
CREATE INDEX searched_by_amount ON searched_payments USING btree (merchant_id, amount, received_at, payment_id);
CREATE INDEX searched_by_bin ON searched_payments USING btree (merchant_id, bin, received_at, payment_id) WHERE (bin IS NOT NULL);
CREATE INDEX searched_by_brand ON searched_payments USING btree (merchant_id, brand, received_at, payment_id);
CREATE INDEX searched_by_card ON searched_payments USING btree (merchant_id, last_four, received_at, payment_id) WHERE (last_four IS NOT NULL);
CREATE INDEX searched_by_chain ON searched_payments USING btree (merchant_id, root_id, received_at, payment_id) WHERE (root_id <> payment_id);
CREATE INDEX searched_by_descriptor ON searched_payments USING btree (merchant_id, descriptor, received_at, payment_id) WHERE (descriptor IS NOT NULL);
CREATE INDEX searched_by_email ON searched_payments USING btree (merchant_id, email_hash, received_at, payment_id) WHERE (email_hash IS NOT NULL);
CREATE INDEX searched_by_invoice ON searched_payments USING btree (merchant_id, invoice, received_at, payment_id) WHERE (invoice IS NOT NULL);
CREATE INDEX searched_by_outcome ON searched_payments USING btree (merchant_id, outcome, received_at, payment_id) WHERE (outcome <> 'success'::text);
CREATE INDEX searched_by_reference ON searched_payments USING btree (merchant_id, reference, received_at, payment_id) WHERE (reference IS NOT NULL);
CREATE INDEX searched_by_result ON searched_payments USING btree (merchant_id, result, received_at, payment_id);
CREATE INDEX searched_by_slip ON searched_payments USING btree (merchant_id, slip_number, received_at, payment_id) WHERE (slip_number IS NOT NULL);
CREATE INDEX searched_by_time ON searched_payments USING btree (merchant_id, received_at, payment_id);
CREATE INDEX searched_by_transaction ON searched_payments USING btree (merchant_id, merchant_transaction_id, received_at, payment_id) WHERE (merchant_transaction_id IS NOT NULL);
CREATE INDEX searched_by_type ON searched_payments USING btree (merchant_id, payment_type, received_at, payment_id);

create table settled_bookings (
  merchant_id uuid not null,
  payment_id uuid not null,
  kind text not null,
  acquirer text not null,
  day date not null,
  outcome text not null,
  hash bytea not null,
  line integer not null,
  settled_at timestamp with time zone not null,
  constraint settled_bookings_pkey PRIMARY KEY (merchant_id, payment_id, kind),
  constraint settled_bookings_kind_check CHECK ((kind = ANY (ARRAY['debit'::text, 'debitReversal'::text, 'credit'::text, 'creditReversal'::text]))),
  constraint settled_bookings_outcome_check CHECK ((outcome = ANY (ARRAY['matched'::text, 'otherAmount'::text])))
);
CREATE INDEX settled_bookings_by_day ON settled_bookings USING btree (acquirer, day);

create table settled_days (
  acquirer text not null,
  day date not null,
  hash bytea not null,
  read_at timestamp with time zone not null,
  constraint settled_days_pkey PRIMARY KEY (acquirer, day, hash)
);

create table sign_in_attempts (
  subject text not null,
  since timestamp with time zone not null,
  attempts integer not null,
  constraint sign_in_attempts_pkey PRIMARY KEY (subject)
);
CREATE INDEX sign_in_attempts_by_time ON sign_in_attempts USING btree (since);

create table slip_numbers (
  account text not null,
  next bigint not null,
  elsewhere boolean not null default false,
  constraint slip_numbers_pkey PRIMARY KEY (account),
  constraint slip_numbers_next_check CHECK ((next > 0))
);

create table slip_orders (
  merchant_id uuid not null,
  payment_id uuid not null,
  slip_id uuid not null,
  account text not null,
  kind text not null,
  ordered_at timestamp with time zone not null,
  sequence integer,
  line integer,
  constraint slip_orders_pkey PRIMARY KEY (merchant_id, payment_id),
  constraint slip_orders_check CHECK (((sequence IS NULL) = (line IS NULL))),
  constraint slip_orders_kind_check CHECK ((kind = ANY (ARRAY['entry'::text, 'writeOff'::text])))
);
CREATE UNIQUE INDEX slip_orders_by_place ON slip_orders USING btree (account, sequence, line) WHERE (sequence IS NOT NULL);
CREATE INDEX slip_orders_waiting ON slip_orders USING btree (account, ordered_at) WHERE (sequence IS NULL);

create table slips (
  merchant_id uuid not null,
  payment_id uuid not null,
  account text not null,
  number text not null,
  document text not null,
  due_on date not null,
  amount bigint not null,
  currency text not null,
  barcode text not null,
  line text not null,
  link_hash bytea not null,
  issued_at timestamp with time zone not null,
  constraint slips_pkey PRIMARY KEY (merchant_id, payment_id),
  constraint slips_amount_check CHECK ((amount > 0))
);
CREATE UNIQUE INDEX slips_by_link ON slips USING btree (merchant_id, link_hash);
CREATE UNIQUE INDEX slips_by_number ON slips USING btree (account, number);

create table staff (
  id uuid not null,
  name text not null,
  role text not null,
  entities uuid[] not null,
  password text,
  sealed_totp bytea,
  factors_by text,
  totp_step bigint not null default 0,
  made_at timestamp with time zone not null,
  removed_at timestamp with time zone,
  constraint staff_pkey PRIMARY KEY (id),
  constraint staff_check CHECK (((password IS NULL) = (sealed_totp IS NULL))),
  constraint staff_entities_check CHECK ((cardinality(entities) > 0)),
  constraint staff_name_check CHECK ((name = lower(name)))
);
alter table staff alter column sealed_totp set statistics 0;
CREATE INDEX staff_by_entity ON staff USING gin (entities);
CREATE UNIQUE INDEX staff_by_name ON staff USING btree (name) WHERE (removed_at IS NULL);

create table staff_links (
  hash bytea not null,
  staff_id uuid,
  made_by text,
  ends_at timestamp with time zone not null,
  constraint staff_links_pkey PRIMARY KEY (hash)
);

create table staff_orders (
  merchant_id uuid not null,
  id uuid not null,
  payment_id uuid not null,
  root_id uuid not null,
  channel_id uuid not null,
  type text not null,
  amount bigint not null,
  currency text not null,
  reason text not null,
  sealed bytea,
  once text not null,
  asked_by text not null,
  asked_at timestamp with time zone not null,
  waits boolean not null,
  decision text,
  decided_by text,
  decided_at timestamp with time zone,
  outcome text,
  constraint staff_orders_pkey PRIMARY KEY (merchant_id, id),
  constraint staff_orders_merchant_id_payment_id_once_key UNIQUE (merchant_id, payment_id, once),
  constraint staff_orders_amount_check CHECK ((amount > 0)),
  constraint staff_orders_check CHECK ((((decision IS NULL) = (decided_by IS NULL)) AND ((decision IS NULL) = (decided_at IS NULL)))),
  constraint staff_orders_check1 CHECK (((decision IS NULL) OR waits)),
  constraint staff_orders_check2 CHECK ((decided_by <> asked_by)),
  constraint staff_orders_decision_check CHECK ((decision = ANY (ARRAY['approved'::text, 'refused'::text]))),
  constraint staff_orders_type_check CHECK ((type = ANY (ARRAY['CP'::text, 'RF'::text, 'RV'::text, 'transfer'::text])))
);
alter table staff_orders alter column sealed set statistics 0;
CREATE INDEX staff_orders_of_chain ON staff_orders USING btree (merchant_id, root_id, asked_at);
CREATE INDEX staff_orders_waiting ON staff_orders USING btree (merchant_id, asked_at) WHERE waits;

create table staff_sessions (
  hash bytea not null,
  id uuid not null,
  staff_id uuid,
  begun_at timestamp with time zone not null,
  used_at timestamp with time zone not null,
  proven_at timestamp with time zone not null,
  address text not null,
  agent text not null,
  constraint staff_sessions_pkey PRIMARY KEY (hash),
  constraint staff_sessions_id_key UNIQUE (id)
);
CREATE INDEX staff_sessions_by_staff ON staff_sessions USING btree (staff_id);

create table sweeps (
  kind text not null,
  taken_at timestamp with time zone not null,
  swept_at timestamp with time zone,
  erased bigint not null default 0,
  constraint sweeps_pkey PRIMARY KEY (kind)
);

create table taken_back (
  merchant_id uuid not null,
  payment_id uuid not null,
  acquirer text not null,
  heard_at timestamp with time zone not null,
  constraint taken_back_pkey PRIMARY KEY (merchant_id, payment_id)
);

create table terminals (
  acquirer text not null,
  terminal text not null,
  next_trace integer not null default 1,
  leased_by uuid,
  leased_until timestamp with time zone,
  fence integer not null default 0,
  lines text,
  seen_at timestamp with time zone,
  constraint terminals_pkey PRIMARY KEY (acquirer, terminal),
  constraint terminals_next_trace_check CHECK (((next_trace >= 1) AND (next_trace <= 999999)))
);

create table trace_numbers (
  acquirer_id text not null,
  blocks bigint not null,
  constraint trace_numbers_pkey PRIMARY KEY (acquirer_id)
);

create table transfer_files (
  account text not null,
  sequence integer not null,
  made_at timestamp with time zone not null,
  written_at timestamp with time zone,
  by_place boolean not null default true,
  constraint transfer_files_pkey PRIMARY KEY (account, sequence),
  constraint transfer_files_sequence_check CHECK ((sequence > 0))
);

create table unanswered (
  merchant_id uuid not null,
  payment_id uuid not null,
  recorded_at timestamp with time zone not null,
  constraint unanswered_pkey PRIMARY KEY (merchant_id, payment_id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=10000);

alter table archived_payments add constraint archived_payments_archive_id_fkey FOREIGN KEY (archive_id) REFERENCES archives(id);

alter table case_notes add constraint case_notes_merchant_id_case_id_fkey FOREIGN KEY (merchant_id, case_id) REFERENCES operator_cases(merchant_id, id);

alter table clearing_lines add constraint clearing_lines_hash_fkey FOREIGN KEY (hash) REFERENCES clearing_files(hash);

alter table closing_sums add constraint closing_sums_archive_id_fkey FOREIGN KEY (archive_id) REFERENCES archives(id);

alter table collected_captures add constraint collected_captures_acquirer_sequence_fkey FOREIGN KEY (acquirer, sequence) REFERENCES capture_files(acquirer, sequence);

alter table entities add constraint entities_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES entities(id);

alter table passkeys add constraint passkeys_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES staff(id);

alter table recovery_codes add constraint recovery_codes_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES staff(id);

alter table refund_transfers add constraint refund_transfers_account_sequence_fkey FOREIGN KEY (account, sequence) REFERENCES transfer_files(account, sequence);

alter table risk_entries add constraint risk_entries_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES entities(id);

alter table staff_links add constraint staff_links_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES staff(id);

alter table staff_sessions add constraint staff_sessions_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES staff(id);

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.access_tokens FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT ON public.answers FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER audit_grows BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER audit_head_stays BEFORE DELETE OR TRUNCATE ON public.audit_head FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.case_notes FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.chargeback_lines FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.checkout_attempts FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.checkouts FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.claimed_transactions FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.collected_captures FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.continuations FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER deliveries_wake AFTER UPDATE ON public.deliveries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION wake_deliveries();

CREATE TRIGGER left_behind BEFORE INSERT ON public.delivery_attempts FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT ON public.due_work FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.endpoints FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.entities FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT ON public.events FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.late_approvals FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.operator_cases FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.owed_files FOR EACH ROW EXECUTE FUNCTION refuse_left('owner_id');

CREATE TRIGGER left_behind BEFORE INSERT ON public.payments FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.pending_answers FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.receipts FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.redirects FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.refund_transfers FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.registrations FOR EACH ROW EXECUTE FUNCTION refuse_left('owner_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.report_schedules FOR EACH ROW EXECUTE FUNCTION refuse_left('owner_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.risk_attempts FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.risk_entries FOR EACH ROW EXECUTE FUNCTION refuse_left('owner_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.settled_bookings FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.slip_orders FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.slips FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.staff_orders FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');

CREATE TRIGGER left_behind BEFORE INSERT OR DELETE OR UPDATE ON public.taken_back FOR EACH ROW EXECUTE FUNCTION refuse_left('merchant_id');
