-- What operators count, an index less for every call, and every answer that was
-- not accepted.

-- +goose Up

-- Call identities that belong to no operation are found in the order of their
-- keys when they are pruned, so nobody needs them by operation.
DROP INDEX call_bindings_status_ref;

-- Counts the leases that were lost. An attempt that ends by itself is not in it.
CREATE INDEX attempts_lost ON attempts (operation_pk) WHERE outcome = 'lost';

-- An answer of the downstream that was not accepted, by attempt: it broke the
-- output contract, or it came when somebody else had the say. There may be more
-- than one, where a person has said to try again or a worker stood still.
ALTER TABLE rejected_receipts DROP CONSTRAINT rejected_receipts_pkey;
ALTER TABLE rejected_receipts ADD PRIMARY KEY (operation_pk, attempt);

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
