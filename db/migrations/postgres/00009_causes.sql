-- Why an attempt has ended as it did, in a word that holds no value: for who has to
-- find out why an operation does not get on. Empty where how it ended says it, and for
-- attempts from before this column.

-- +goose Up
ALTER TABLE attempts ADD COLUMN cause text NOT NULL DEFAULT '';

-- +goose Down
-- There is no way down: it would drop evidence. This fails on purpose, and leaves
-- everything as it is.
SELECT a_ledger_has_no_way_down;
