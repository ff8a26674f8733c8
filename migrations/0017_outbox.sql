-- An event is taken by every consumer of the outbox for itself: each has a mark and an index of its own.

alter table events rename column fan_out to notified;
alter table events rename constraint events_fan_out_check to events_notified_check;
alter index events_waiting rename to events_not_notified;
