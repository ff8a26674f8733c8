-- What is sealed is not sampled. ANALYZE, which the server also calls by itself, copies whole values of a column into the planner's statistics: a table with a
-- log, in every standby and base backup. They outlived the records themselves, also of a table that is not logged. No plan asks for any of these values.
-- To alter the type of a column, to the one that it has, takes its statistics away; nothing else that is ours to do would. Its rows are not written anew.
alter table challenge_secrets
  alter column sealed type bytea,
  alter column merchant_id set statistics 0,
  alter column payment_id set statistics 0,
  alter column sealed set statistics 0,
  alter column erase_after set statistics 0,
  set (autovacuum_enabled = false, toast.autovacuum_enabled = false);  -- it is written anew each minute (eraseSecrets)
alter table checkouts        alter column sealed type bytea, alter column sealed set statistics 0;
alter table continuations    alter column sealed type bytea, alter column sealed set statistics 0;
alter table due_work         alter column details type jsonb, alter column details set statistics 0;  -- what recovery inherits from a continuation
alter table endpoints        alter column sealed_secrets type bytea, alter column sealed_secrets set statistics 0;
alter table order_files      alter column sealed type bytea, alter column sealed set statistics 0;
alter table pending_answers  alter column sealed type bytea, alter column sealed set statistics 0;
alter table refund_transfers alter column sealed type bytea, alter column sealed set statistics 0;
alter table return_files     alter column sealed type bytea, alter column sealed set statistics 0;
alter table sealed_cards     alter column sealed type bytea, alter column sealed set statistics 0;
alter table staff            alter column sealed_totp type bytea, alter column sealed_totp set statistics 0;
alter table staff_orders     alter column sealed type bytea, alter column sealed set statistics 0;
