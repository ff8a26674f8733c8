-- What is due of some kinds is found without reading past what waits of others: errands to servers that merchants name wait by the thousand when those say nothing.
create index due_work_by_kind on due_work (kind, due_at);
