-- A delivery that waits behind another of its chain is set aside until that one holds it no more (decisions, 40): who looks for what is due does not read past it, however
-- many wait. Those that wait already are set aside when they are next met.
alter table deliveries add column behind boolean not null default false;

drop index deliveries_due;
create index deliveries_free on deliveries (merchant_id, endpoint_id, due_at, position) where state = 'scheduled' and not behind;
create index deliveries_behind on deliveries (merchant_id, endpoint_id, root_id, position) where state = 'scheduled' and behind;

-- Whatever ends a delivery, or the last of the attempts that others wait for (retrySchedule.ts), also wakes the next of its chain: in the same transaction, also
-- when a gateway of the version before does it. A trigger looks anew after whoever set one aside has ended, which the statement itself cannot. Of a merchant who
-- arrives rows are copied as they are.
create function wake_deliveries() returns trigger language plpgsql as $$
begin
  if not exists (select from changed where not behind and (state <> 'scheduled' or (attempts >= 8 and leased_until is null))) then
    return null;
  end if;
  update deliveries d set behind = false
    from (
      select first.merchant_id, first.endpoint_id, first.position
        from (select distinct merchant_id, endpoint_id, root_id from changed
               where not behind and (state <> 'scheduled' or (attempts >= 8 and leased_until is null))) chain
       cross join lateral (
         select merchant_id, endpoint_id, position from deliveries
          where merchant_id = chain.merchant_id and endpoint_id = chain.endpoint_id and root_id = chain.root_id and state = 'scheduled' and behind
          order by position limit 1) first
       where not exists (select from merchant_moves m where m.merchant_id = chain.merchant_id and not m.here)) woken
   where d.merchant_id = woken.merchant_id and d.endpoint_id = woken.endpoint_id and d.position = woken.position;
  return null;
end
$$;
create trigger deliveries_wake after update on deliveries referencing new table as changed for each statement execute function wake_deliveries();
