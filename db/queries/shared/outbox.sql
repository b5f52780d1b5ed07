-- name: InsertEvent :exec
-- InsertEvent puts an operation's event into the outbox.
INSERT INTO outbox (
    operation_pk, event_id, payload_json, state, lease_owner, lease_until,
    attempt_count, created_at, updated_at, row_digest, next_attempt_at, lane, decisions
) VALUES (
    @operation_pk, @event_id, @payload_json, @state, @lease_owner, @lease_until,
    @attempt_count, @created_at, @updated_at, @row_digest, @next_attempt_at, @lane, @decisions
);

-- name: GetEvent :one
-- GetEvent returns an operation's event.
SELECT * FROM outbox WHERE operation_pk = @operation_pk;

-- name: MoveEvent :execrows
-- MoveEvent changes an event, if every column is still what the caller has read,
-- the fence (attempt_count) among them.
UPDATE outbox
SET state = @state, lease_owner = @lease_owner, lease_until = @lease_until,
    attempt_count = @attempt_count, updated_at = @updated_at, row_digest = @row_digest,
    next_attempt_at = @next_attempt_at, decisions = @decisions
WHERE operation_pk = @operation_pk AND row_digest = @from_digest AND state = @from_state
    AND attempt_count = @fence AND COALESCE(lease_owner, '') = CAST(@from_lease_owner AS TEXT)
    AND COALESCE(lease_until, 0) = CAST(@from_lease_until AS BIGINT) AND next_attempt_at = @from_next_attempt_at
    AND event_id = @event_id AND payload_json = @payload_json AND lane = @lane
    AND created_at = @created_at AND updated_at = @from_updated_at AND decisions = @from_decisions;

-- name: NextLane :one
-- NextLane returns the lane after a given one that has open events.
SELECT lane FROM outbox
WHERE state IN ('pending', 'processing') AND lane > @after
ORDER BY lane LIMIT 1;

-- name: ListDueInLane :many
-- ListDueInLane lists the operations of a lane that may be claimed, the one that
-- has waited longest first.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND lane = @lane AND next_attempt_at <= @now
ORDER BY next_attempt_at, operation_pk LIMIT CAST(@page AS BIGINT);

-- name: ListAstray :many
-- ListAstray lists open events that were written so much later than now that they
-- would wait for more than twice as long as they were to: the ledger's clock has
-- been set back since.
SELECT operation_pk FROM outbox
WHERE state IN ('pending', 'processing') AND next_attempt_at > @now AND next_attempt_at >= updated_at
    AND updated_at - 1 > @now AND updated_at + updated_at - next_attempt_at > @now
ORDER BY lane, next_attempt_at LIMIT CAST(@page AS BIGINT);

-- name: InsertAttempt :execrows
-- InsertAttempt records how an attempt has ended, unless that is known.
INSERT INTO attempts (operation_pk, attempt, worker_id, started_at, ended_at, outcome, row_digest, cause)
VALUES (@operation_pk, @attempt, @worker_id, @started_at, @ended_at, @outcome, @row_digest, @cause)
ON CONFLICT DO NOTHING;

-- name: ListAttempts :many
-- ListAttempts returns an operation's attempts that have ended, in order.
SELECT * FROM attempts WHERE operation_pk = @operation_pk ORDER BY attempt;
