-- The oldest work of each merchant is found without reading past what others have: of a kind, and of a kind at one side.
create index due_work_by_merchant on due_work (kind, merchant_id, due_at);
create index due_work_by_side_and_merchant on due_work (kind, side, merchant_id, due_at);
