-- A payment asks which of an entity's networks its address lies in: found by the tree of networks, not by reading each.
create index risk_entries_by_network on risk_entries using gist (network inet_ops) where network is not null;
