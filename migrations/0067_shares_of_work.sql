-- The oldest work of each merchant is found without reading past what others have: of a kind, and of a kind at one side.
create index due_work_by_merchant on due_work (kind, merchant_id, due_at);
create index due_work_by_side_and_merchant on due_work (kind, side, merchant_id, due_at);

-- What is owed to a server is kept piece by piece while it is made, under an id of its own: it is the file's when all of it is there.
alter table owed_files add column making_id uuid;
