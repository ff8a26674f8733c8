-- What nobody writes of a merchant who is served by another cell, whoever has not heard of that: a process that stood still, or to which the news did not come, or somebody who
-- gives a command in the wrong cell. While the merchant leaves, the fence (migration 0038) waits for who is writing; once it is forgotten here, and until it has come, this is
-- what remains. Who is held until the other cells were asked (put_back_at) may end here what it has begun.
create function refuse_left() returns trigger language plpgsql as $$
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
$$;

-- Tables whose rows are written only together with one of these, behind one of them, or by who looks for those that are served here, have none: it costs microseconds a row. Of those of
-- each payment the beginning is looked at alone.
do $$
declare
  found record;
begin
  for found in
    select c.relname as name, a.attname as owner,
           case when c.relname = any ('{answers,delivery_attempts,due_work,events,payments}') then 'insert' else 'insert or update or delete' end as changes
      from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname in ('merchant_id', 'owner_id') and not a.attisdropped
       and c.relname <> all ('{archived_payments,capture_files,captures,challenge_secrets,closing_sums,deliveries,idempotency_keys,journal,merchant_moves,order_files,request_records,return_files,sealed_cards,searched_payments,unanswered}')
  loop
    execute format('create trigger left_behind before %s on %I for each row execute function refuse_left(%L)', found.changes, found.name, found.owner);
  end loop;
end
$$;
