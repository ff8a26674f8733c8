-- Chargebacks come in reports of acquirers. A line of a report is recorded once, however often the report is imported.

create table chargeback_lines (
  merchant_id uuid not null,
  report      text not null,
  line        integer not null check (line > 0),
  payment_id  uuid not null,  -- the CB or CR that the line became
  primary key (merchant_id, report, line)
);
