-- Version 11. Samples of a row of history that are long for a page of that table, whose column data then has the number.
-- There they would be on an overflow page of their own, most of it empty. Rows of older builds stay as they are.
CREATE TABLE history_data(
    number INTEGER PRIMARY KEY,
    data BLOB NOT NULL              -- as in history, whose data_crc is of it
);
