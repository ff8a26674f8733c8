-- Nothing is woken at an endpoint that is closed: all that it is owed is given up, in steps that wait for nobody, and those who end what was under way there wait for
-- nothing but one such step.
create or replace function wake_deliveries() returns trigger language plpgsql as $$
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
$$;
