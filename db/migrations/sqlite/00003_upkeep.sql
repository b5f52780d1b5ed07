-- What operators count, and an index less for every call.

-- +goose Up

-- Call identities that belong to no operation are found in the order of their
-- keys when they are pruned, so nobody needs them by operation.
DROP INDEX call_bindings_status_ref;

-- Counts the leases that were lost. An attempt that ends by itself is not in it.
CREATE INDEX attempts_lost ON attempts (operation_pk) WHERE outcome = 'lost';

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
