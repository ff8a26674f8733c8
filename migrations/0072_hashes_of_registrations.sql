-- A registration shows the first and the last digits of its card; a hash of the number beside them, even a keyed one, tells whoever gets the key all digits between.
-- Nothing reads it any more. The column stays, because gateways of the version before write and read it while they are replaced one after the other; a later release
-- drops it. What they wrote, and the hashes of requests with an Idempotency-Key that are older than such a key is good, retention takes away in small steps
-- (registrationHashes), which this index leads to: afterwards it has the rows of three days.
create index registrations_with_hashes on registrations (made_at) where fingerprint is not null or key_fingerprint is not null;
drop index registrations_by_card;  -- last: nobody reads registrations from here on until the migration ends
