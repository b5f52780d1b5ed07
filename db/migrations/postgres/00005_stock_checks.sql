-- SQLite's checks in words that older versions of it know. PostgreSQL has its own.

-- +goose Up
SELECT 'nothing to do';

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
