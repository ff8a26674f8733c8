-- A replay finds the first delivery of an event also where that one is a replay: by what names the event, and in order. Whoever reads those of a payment uses it too.
create index deliveries_replayed_event on deliveries (merchant_id, payment_id, endpoint_id, event_sequence, position) where replay;
drop index deliveries_replayed;
