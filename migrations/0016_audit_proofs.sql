-- What the audit takes from the database it does not take on trust.

-- A keyed hash of minute, kind and subject: a row that this installation did not write is nobody's failure. What was counted in the running minutes
-- has none and is given up.
delete from log_in_failures;
alter table log_in_failures add column proof bytea not null;

-- Numbers that the program can count beyond, whoever wrote the row.
alter table audit add constraint audit_sequence_counts check (sequence < 9007199254740991);
