-- name: LockDueInLane :many
-- LockDueInLane is ListDueInLane for a transaction that claims what it lists.
-- PostgreSQL's skips what others are claiming; here nobody else can be.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND lane = @lane AND next_attempt_at <= @now
ORDER BY next_attempt_at, operation_pk LIMIT CAST(@page AS BIGINT);
