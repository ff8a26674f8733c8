-- What nobody writes of a merchant who is served by another cell, whoever has not heard of that: a process that stood still, or to which the news did not come. While the
-- merchant leaves, the fence (migration 0038) waits for who is writing; once it is forgotten here, and until it has come, this is what remains.
create function refuse_left() returns trigger language plpgsql as $$
declare
  owner uuid;
begin
  if tg_argv[0] = 'owner_id' then owner := new.owner_id; else owner := new.merchant_id; end if;
  if exists (select from merchant_moves where merchant_id = owner and not here and state <> 'frozen')
     and nullif(current_setting('tollgate.forgets', true), '')::uuid is distinct from owner then
    raise exception using errcode = 'TG503', message = 'the merchant ' || replace(owner::text, '-', '') || ' is served elsewhere';
  end if;
  return new;
end
$$;

-- Tables whose rows are written only together with one of these, behind one of them, or by who looks for those that are served here, have none: it costs microseconds a row.
do $$
declare
  found record;
begin
  for found in
    select c.relname as name, a.attname as owner from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname in ('merchant_id', 'owner_id') and not a.attisdropped
       and c.relname <> all ('{archived_payments,capture_files,captures,challenge_secrets,closing_sums,deliveries,due_work,idempotency_keys,journal,merchant_moves,order_files,request_records,return_files,sealed_cards,searched_payments,unanswered}')
  loop
    execute format('create trigger left_behind before insert on %I for each row execute function refuse_left(%L)', found.name, found.owner);
  end loop;
end
$$;
