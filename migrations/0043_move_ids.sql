-- The same in both databases of a move, and in no others: a cell's name may come to stand for another database. Null in moves that began before.
alter table merchant_moves add column move_id uuid;
