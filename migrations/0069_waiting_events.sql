-- The events that wait, of one merchant after another and the oldest of each first: nobody's are looked for behind those of another.
create index events_not_notified_by_merchant on events (merchant_id, recorded_at) where notified is null;
create index events_not_searched_by_merchant on events (merchant_id, recorded_at) where searched is null;
