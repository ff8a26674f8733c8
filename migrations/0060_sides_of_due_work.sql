-- Whose server a piece of work calls, by its host: what waits for one that says nothing is found apart from all other work, and one side has a share of the
-- places. Empty: nobody's, or not known yet, as what a gateway of the version before has written; whoever takes that looks.
alter table due_work add column side text not null default '';
create index due_work_by_side on due_work (kind, side, due_at);
