-- Payments that their process is at work on. A row is written with its payment and goes with the answer, or when the payment passes into other hands:
-- those of recovery (due work) or of a shopper who is away (a continuation). A row that stays was left by a process that died, whatever its
-- clock said and whenever its payment was committed. The table holds what is under way and nothing else: it is small, and vacuumed often.
create table unanswered (
  merchant_id uuid not null,
  payment_id  uuid not null,
  recorded_at timestamptz not null,  -- real time
  primary key (merchant_id, payment_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

insert into unanswered (merchant_id, payment_id, recorded_at)
select p.merchant_id, p.id, p.recorded_at
  from payments p
 where not exists (select from answers a where a.merchant_id = p.merchant_id and a.payment_id = p.id)
   and not exists (select from continuations c where c.merchant_id = p.merchant_id and c.payment_id = p.id)
   and not exists (select from due_work d where d.kind = 'recover' and d.merchant_id = p.merchant_id and d.subject_id = p.id);

-- The search for unanswered payments remembered how far it had come in the order of ids, and passed by what was committed late.
drop table sweeps;

-- Counts how often the work was taken or asked for again: whoever took it ends only what it took.
alter table due_work add column generation integer not null default 0;
