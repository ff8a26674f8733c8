-- Settlement reports: what was cleared for a merchant, given back or taken back, by the time at which it was booked. A report of a day reads that day and
-- nothing else; holds and reservations, the larger part of the journal, are not in it.
create index journal_of_merchants on journal (merchant_id, booked_at, payment_id)
  where state = 'posted' and 'merchant' in (debit, credit);
