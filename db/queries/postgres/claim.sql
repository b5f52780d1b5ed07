-- name: LockDueInLane :many
-- LockDueInLane is ListDueInLane for a transaction that claims what it lists. It
-- skips what others are claiming, so that many workers share out a lane instead
-- of waiting for each other.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND lane = @lane AND next_attempt_at <= @now
ORDER BY next_attempt_at, operation_pk LIMIT CAST(@page AS BIGINT)
FOR UPDATE SKIP LOCKED;
