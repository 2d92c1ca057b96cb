//! Statements through parser and model.
//!
//! The first five stories are those of which Debezium 3.6.3 was seen to print the records; where we differ, a comment
//! says how.

use super::super::{DdlContext, DdlEvent, DdlEventKind, Flavor, SqlMode, StatementClass};
use super::super::{apply_statement, classify};
use crate::record::TableChange;
use crate::schema::{Column, DefaultValue, Table, TableId, Tables};

#[test]
fn mysql_alters_give_what_debezium_gives() {
    story(
        &mysql(),
        &[
            (
                "CREATE TABLE d1 (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(10) DEFAULT 'x' COMMENT 'bee') COMMENT 'tbl' DEFAULT CHARSET=latin1",
                "CREATE gold.d1 latin1 [id] id INT!; a INT; b VARCHAR(10) latin1 =x",
            ),
            (
                "ALTER TABLE d1 ADD COLUMN c INT NOT NULL DEFAULT 5 AFTER id, ADD COLUMN f INT FIRST",
                "ALTER gold.d1 latin1 [id] f INT; id INT!; c INT! =5; a INT; b VARCHAR(10) latin1 =x",
            ),
            (
                "ALTER TABLE d1 ADD (g INT, h VARCHAR(5) CHARACTER SET utf8mb4)",
                "ALTER gold.d1 latin1 [id] f INT; id INT!; c INT! =5; a INT; b VARCHAR(10) latin1 =x; g INT; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 MODIFY COLUMN a BIGINT NOT NULL, CHANGE COLUMN b bb VARCHAR(30) NOT NULL DEFAULT 'y' FIRST",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; f INT; id INT!; c INT! =5; a BIGINT!; g INT; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 RENAME COLUMN c TO cc",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; f INT; id INT!; cc INT! =5; a BIGINT!; g INT; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 ALTER COLUMN cc SET DEFAULT 7, ALTER g SET DEFAULT 3",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; f INT; id INT!; cc INT! =7; a BIGINT!; g INT =3; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 ALTER COLUMN cc DROP DEFAULT",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; f INT; id INT!; cc INT!; a BIGINT!; g INT =3; h VARCHAR(5) utf8mb4",
            ),
            // DIFFERS: Debezium keeps the word null as the default.
            (
                "ALTER TABLE d1 ALTER COLUMN g SET DEFAULT NULL",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; f INT; id INT!; cc INT!; a BIGINT!; g INT; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 DROP COLUMN f, DROP g",
                "ALTER gold.d1 latin1 [id] bb VARCHAR(30) latin1! =y; id INT!; cc INT!; a BIGINT!; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 RENAME COLUMN id TO id2, RENAME COLUMN cc TO id3",
                "ALTER gold.d1 latin1 [id2] bb VARCHAR(30) latin1! =y; id2 INT!; id3 INT!; a BIGINT!; h VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE d1 MODIFY h VARCHAR(7) AFTER bb, MODIFY bb VARCHAR(31) AFTER h",
                "ALTER gold.d1 latin1 [id2] h VARCHAR(7) latin1; bb VARCHAR(31) latin1; id2 INT!; id3 INT!; a BIGINT!",
            ),
            (
                "ALTER TABLE d1 CHANGE a A2 BIGINT NOT NULL",
                "ALTER gold.d1 latin1 [id2] h VARCHAR(7) latin1; bb VARCHAR(31) latin1; id2 INT!; id3 INT!; A2 BIGINT!",
            ),
            (
                "ALTER TABLE d1 CHANGE A2 a2 INT UNSIGNED NULL",
                "ALTER gold.d1 latin1 [id2] h VARCHAR(7) latin1; bb VARCHAR(31) latin1; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 CONVERT TO CHARACTER SET utf8mb4",
                "ALTER gold.d1 utf8mb4 [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            // DIFFERS: Debezium keeps the character set; so do all definitions of the table that follow.
            (
                "ALTER TABLE d1 DEFAULT CHARACTER SET gbk COLLATE gbk_bin",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 ADD COLUMN n VARCHAR(3)",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED; n VARCHAR(3) gbk",
            ),
            (
                "ALTER TABLE d1 DROP COLUMN n",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 DROP PRIMARY KEY, ADD PRIMARY KEY (id2)",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 ADD UNIQUE INDEX ux (id3), ADD INDEX ix (a2)",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 DROP INDEX ix, DROP KEY ux",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 ADD CONSTRAINT UNIQUE uu (id3), ADD CONSTRAINT ck CHECK (id3 > 0)",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 RENAME INDEX uu TO uu2",
                "ALTER gold.d1 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "ALTER TABLE d1 RENAME AS d2",
                "ALTER gold.d1 -> gold.d2 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "RENAME TABLE d2 TO d3, pre TO pre2",
                "ALTER gold.d2 -> gold.d3 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED | ALTER gold.pre -> gold.pre2 utf8mb4 [id] id INT!; a INT",
            ),
            (
                "CREATE TABLE lk LIKE d3",
                "CREATE gold.lk gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "CREATE TABLE lk2 (LIKE d3)",
                "CREATE gold.lk2 gbk [id2] h VARCHAR(7) utf8mb4; bb VARCHAR(31) utf8mb4; id2 INT!; id3 INT!; a2 INT UNSIGNED",
            ),
            (
                "CREATE TABLE `qsel` ( `one` int NOT NULL DEFAULT '0', `s` varchar(1) NOT NULL DEFAULT '', `t` datetime NOT NULL ) START TRANSACTION",
                "CREATE gold.qsel utf8mb4 [] one INT! =0; s VARCHAR(1) utf8mb4! =; t DATETIME!",
            ),
            (
                "CREATE TABLE cts_key (a INT PRIMARY KEY, b INT UNIQUE, c INT NOT NULL UNIQUE KEY)",
                "CREATE gold.cts_key utf8mb4 [a] a INT!; b INT; c INT!",
            ),
            (
                "CREATE TABLE nokey_then (a INT, b INT NOT NULL, c INT NOT NULL, UNIQUE KEY (a), UNIQUE KEY bc (b,c))",
                "CREATE gold.nokey_then utf8mb4 [b,c] a INT; b INT!; c INT!",
            ),
            (
                "ALTER TABLE nokey_then MODIFY a INT NOT NULL",
                "ALTER gold.nokey_then utf8mb4 [b,c] a INT!; b INT!; c INT!",
            ),
            (
                "ALTER TABLE nokey_then DROP INDEX bc",
                "ALTER gold.nokey_then utf8mb4 [b,c] a INT!; b INT!; c INT!",
            ),
            (
                "ALTER TABLE nokey_then ADD PRIMARY KEY (a)",
                "ALTER gold.nokey_then utf8mb4 [a] a INT!; b INT!; c INT!",
            ),
            (
                "ALTER TABLE nokey_then DROP PRIMARY KEY",
                "ALTER gold.nokey_then utf8mb4 [] a INT!; b INT!; c INT!",
            ),
            (
                "CREATE UNIQUE INDEX ub ON nokey_then (c DESC)",
                "ALTER gold.nokey_then utf8mb4 [c] a INT!; b INT!; c INT!",
            ),
            (
                "ALTER TABLE pre2 ADD COLUMN x INT, LOCK=NONE, ALGORITHM=INPLACE",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT",
            ),
            (
                "ALTER TABLE pre2 ADD COLUMN y INT AS (x+1) VIRTUAL, ADD COLUMN w INT GENERATED ALWAYS AS (x*2) STORED",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT; y INT; w INT",
            ),
            (
                "ALTER TABLE pre2 ORDER BY id",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT; y INT; w INT",
            ),
            (
                "ALTER TABLE pre2 FORCE",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT; y INT; w INT",
            ),
            (
                "ALTER TABLE pre2 ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT; y INT; w INT",
            ),
            (
                "ALTER TABLE pre2 ALTER COLUMN x SET VISIBLE",
                "ALTER gold.pre2 utf8mb4 [id] id INT!; a INT; x INT; y INT; w INT",
            ),
            (
                "CREATE TABLE ser1 (s SERIAL, t INT)",
                "CREATE gold.ser1 utf8mb4 [s] s BIGINT UNSIGNED! A; t INT",
            ),
            (
                "CREATE TABLE ser2 (x BIGINT UNSIGNED SERIAL DEFAULT VALUE)",
                "CREATE gold.ser2 utf8mb4 [x] x BIGINT UNSIGNED! A",
            ),
            // DIFFERS: Debezium takes no character set from a table collation, ASCII and UNICODE, and keeps CHAR BYTE a CHAR.
            (
                "CREATE TABLE types1 (a INT SIGNED, b DECIMAL, c DECIMAL(8), d NUMERIC(8,3), e DOUBLE PRECISION UNSIGNED, f CHARACTER VARYING(5), g CHARACTER(3), h NATIONAL CHARACTER(4), i NATIONAL CHARACTER VARYING(4), j LONG VARBINARY, k TINYTEXT BINARY, l VARCHAR(5) ASCII, m VARCHAR(5) UNICODE, n DEC, o INT(3) UNSIGNED, p YEAR, q JSON, r GEOMETRYCOLLECTION, s BOOLEAN, t REAL(5,2), u FLOAT(5), v FLOAT(30), w CHAR BYTE, x CHAR CHARACTER SET ucs2, y VARCHAR(5) CHARSET latin1 COLLATE latin1_bin, z TEXT(1000)) DEFAULT COLLATE utf8mb3_general_ci",
                "CREATE gold.types1 utf8mb3 [] a INT SIGNED; b DECIMAL(10,0); c DECIMAL(8,0); d NUMERIC(8,3); e DOUBLE PRECISION UNSIGNED; f CHARACTER VARYING(5) utf8mb3; g CHARACTER(3) utf8mb3; h NATIONAL CHARACTER(4) utf8; i NATIONAL CHARACTER VARYING(4) utf8; j LONG VARBINARY; k TINYTEXT BINARY utf8mb3; l VARCHAR(5) latin1; m VARCHAR(5) ucs2; n DEC(10,0); o INT UNSIGNED(3); p YEAR; q JSON; r GEOMETRYCOLLECTION; s BOOLEAN; t REAL(5,2); u FLOAT(5); v FLOAT(30); w BINARY(1); x CHAR ucs2; y VARCHAR(5) latin1; z TEXT(1000) utf8mb3",
            ),
            (
                "DROP TABLE IF EXISTS types1, ser1, nosuch",
                "DROP gold.types1 | DROP gold.ser1 | DROP gold.nosuch",
            ),
            ("DROP TABLE lk, lk2", "DROP gold.lk | DROP gold.lk2"),
            (
                "CREATE TABLE chk (id INT PRIMARY KEY, a INT CHECK (a > 0), b INT, CONSTRAINT c1 CHECK (b < 10) NOT ENFORCED, FULLTEXT KEY ft (t), KEY k ((a+b)), t TEXT, p POINT NOT NULL SRID 4326, SPATIAL INDEX sp (p))",
                "CREATE gold.chk utf8mb4 [id] id INT!; a INT; b INT; t TEXT utf8mb4; p POINT!",
            ),
            (
                "CREATE TABLE refd (id INT PRIMARY KEY, cid INT REFERENCES chk(id), CONSTRAINT fk FOREIGN KEY (cid) REFERENCES chk(id) ON DELETE CASCADE)",
                "CREATE gold.refd utf8mb4 [id] id INT!; cid INT",
            ),
            ("DROP DATABASE other", "Database other"),
            (
                "CREATE DATABASE IF NOT EXISTS other DEFAULT CHARACTER SET = utf8mb4 DEFAULT COLLATE = utf8mb4_bin DEFAULT ENCRYPTION='N'",
                "Database other",
            ),
            ("CREATE SCHEMA sch2", "Database sch2"),
            ("DROP SCHEMA sch2", "Database sch2"),
        ],
    );
}

#[test]
fn mysql_names_comments_and_databases_give_what_debezium_gives() {
    story(
        &mysql(),
        &[
            ("ALTER DATABASE gold CHARACTER SET latin1", "Other gold"),
            (
                "CREATE TABLE latdb (v VARCHAR(5), c CHAR(5) COLLATE utf8mb4_bin, e ENUM('é'), t TEXT COLLATE latin1_german1_ci)",
                "CREATE gold.latdb latin1 [] v VARCHAR(5) latin1; c CHAR(5) utf8mb4; e ENUM(1) latin1; t TEXT latin1",
            ),
            (
                "CREATE TABLE vc (id INT /*!80000 NOT NULL */ PRIMARY KEY, v INT /* 99999 bogus */)",
                "CREATE gold.vc latin1 [id] id INT!; v INT",
            ),
            ("CREATE TABLE vc2 (id INT PRIMARY KEY)", "CREATE gold.vc2 latin1 [id] id INT!"),
            (
                "CREATE TABLE /*!32312 IF NOT EXISTS*/ vc3 (id INT PRIMARY KEY /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT DYNAMIC */, v INT) /*!50100 TABLESPACE `innodb_file_per_table` */ ENGINE=InnoDB /*!50100 PARTITION BY HASH (id) PARTITIONS 2 */",
                "CREATE gold.vc3 latin1 [id] id INT!; v INT",
            ),
            (
                "CREATE TABLE gold.`q``t` (`c``d` INT PRIMARY KEY, `e.f` INT, `G` INT)",
                "CREATE gold.q`t latin1 [c`d] c`d INT!; e.f INT; G INT",
            ),
            // DIFFERS: Debezium keeps both backticks.
            (
                "ALTER TABLE gold.`q``t` ADD COLUMN `h``h` INT",
                "ALTER gold.q`t latin1 [c`d] c`d INT!; e.f INT; G INT; h`h INT",
            ),
            (
                "ALTER TABLE gold.`q``t` RENAME COLUMN `G` TO `g`",
                "ALTER gold.q`t latin1 [c`d] c`d INT!; e.f INT; g INT; h`h INT",
            ),
            (
                "CREATE /* inner */ TABLE cm (id INT PRIMARY KEY /* c */ , -- x
 v INT # y
)",
                "CREATE gold.cm latin1 [id] id INT!; v INT",
            ),
            // DIFFERS: Debezium fails: it does not look at the session's sql_mode.
            (
                r#"CREATE TABLE "ansi" ("id" INT PRIMARY KEY, "select" VARCHAR(10) DEFAULT 'a"b')"#,
                r#"CREATE gold.ansi latin1 [id] id INT!; select VARCHAR(10) latin1 =a"b"#,
            ),
            // DIFFERS: Debezium fails at url, vector and auto.
            (
                "CREATE TABLE kw (id INT PRIMARY KEY, `key` INT, value INT, status INT, type INT, `order` INT, rank2 INT, `rank` INT, comment VARCHAR(5), date DATE, time TIME, timestamp TIMESTAMP NULL, action INT, bit BIT, enum ENUM('a'), text TEXT, url VARCHAR(5), vector INT, auto INT)",
                "CREATE gold.kw latin1 [id] id INT!; key INT; value INT; status INT; type INT; order INT; rank2 INT; rank INT; comment VARCHAR(5) latin1; date DATE; time TIME; timestamp TIMESTAMP; action INT; bit BIT(1); enum ENUM(1) latin1; text TEXT latin1; url VARCHAR(5) latin1; vector INT; auto INT",
            ),
            (
                "CREATE TABLE `数据` (`编号` INT PRIMARY KEY, `名` VARCHAR(5))",
                "CREATE gold.数据 latin1 [编号] 编号 INT!; 名 VARCHAR(5) latin1",
            ),
            (
                "ALTER TABLE gold.cm ADD COLUMN w INT",
                "ALTER gold.cm latin1 [id] id INT!; v INT; w INT",
            ),
            (
                "CREATE DEFINER=`root`@`localhost` EVENT ev ON SCHEDULE EVERY 1 DAY DO SELECT 1",
                "Other gold",
            ),
            ("DROP EVENT ev", "Other gold"),
            ("CREATE TABLESPACE tsx ADD DATAFILE 'tsx.ibd' ENGINE=InnoDB", "Other gold"),
            ("DROP TABLESPACE tsx", "Other gold"),
            (
                "CREATE TABLE `gipk` ( `my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */, `a` int DEFAULT NULL, PRIMARY KEY (`my_row_id`) )",
                "CREATE gold.gipk latin1 [my_row_id] my_row_id BIGINT UNSIGNED! A; a INT",
            ),
            ("CREATE TABLE implicit_commit (a INT)", "CREATE gold.implicit_commit latin1 [] a INT"),
            ("CREATE TABLE temp_x (a INT)", "CREATE gold.temp_x latin1 [] a INT"),
            ("DROP DATABASE gold", "Database gold"),
            ("CREATE DATABASE gold", "Database gold"),
            ("CREATE TABLE fin (id INT PRIMARY KEY)", "CREATE gold.fin utf8mb4 [id] id INT!"),
        ],
    );
}

#[test]
fn mysql_keys_partitions_and_charsets_give_what_debezium_gives() {
    story(
        &mysql(),
        &[
            ("CREATE TABLE u1 (a INT, b INT UNIQUE)", "CREATE gold.u1 utf8mb4 [b] a INT; b INT"),
            ("CREATE TABLE u2 (a INT, b INT)", "CREATE gold.u2 utf8mb4 [] a INT; b INT"),
            ("ALTER TABLE u2 ADD PRIMARY KEY (a)", "ALTER gold.u2 utf8mb4 [a] a INT!; b INT"),
            (
                "CREATE TABLE u3 (a INT, b INT, PRIMARY KEY (a,b))",
                "CREATE gold.u3 utf8mb4 [a,b] a INT!; b INT!",
            ),
            ("ALTER TABLE u3 DROP COLUMN b", "ALTER gold.u3 utf8mb4 [a] a INT!"),
            (
                "ALTER TABLE u3 MODIFY a BIGINT NULL, DROP PRIMARY KEY",
                "ALTER gold.u3 utf8mb4 [] a BIGINT",
            ),
            ("CREATE TABLE u4 (a INT)", "CREATE gold.u4 utf8mb4 [] a INT"),
            // DIFFERS: Debezium looks at inline UNIQUE in CREATE TABLE only.
            (
                "ALTER TABLE u4 ADD COLUMN b INT NOT NULL UNIQUE",
                "ALTER gold.u4 utf8mb4 [b] a INT; b INT!",
            ),
            (
                "ALTER TABLE u4 ADD COLUMN pk INT NOT NULL PRIMARY KEY FIRST",
                "ALTER gold.u4 utf8mb4 [pk] pk INT!; a INT; b INT!",
            ),
            ("CREATE TABLE u5 (a INT)", "CREATE gold.u5 utf8mb4 [] a INT"),
            ("ALTER TABLE u5 MODIFY a INT PRIMARY KEY", "ALTER gold.u5 utf8mb4 [a] a INT!"),
            (
                "CREATE TABLE u6 (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY x (b), PRIMARY KEY (a))",
                "CREATE gold.u6 utf8mb4 [a] a INT!; b INT!",
            ),
            ("ALTER TABLE u6 DROP PRIMARY KEY", "ALTER gold.u6 utf8mb4 [] a INT!; b INT!"),
            ("ALTER TABLE u6 CHANGE b bb INT NOT NULL", "ALTER gold.u6 utf8mb4 [] a INT!; bb INT!"),
            (
                "CREATE TABLE u7 (a INT NOT NULL, UNIQUE KEY x (zz), zz INT NOT NULL)",
                "CREATE gold.u7 utf8mb4 [] a INT!; zz INT!",
            ),
            (
                "CREATE TABLE u8 (a VARCHAR(20) NOT NULL, UNIQUE KEY x (a(5)))",
                "CREATE gold.u8 utf8mb4 [a] a VARCHAR(20) utf8mb4!",
            ),
            (
                "CREATE TABLE u9 (a INT NOT NULL, UNIQUE KEY x ((a+1)))",
                "CREATE gold.u9 utf8mb4 [] a INT!",
            ),
            (
                "CREATE TABLE p1 (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))",
                "CREATE gold.p1 utf8mb4 [id] id INT!; v INT",
            ),
            (
                "ALTER TABLE p1 ADD PARTITION (PARTITION p2 VALUES LESS THAN (30), PARTITION p3 VALUES LESS THAN (40))",
                "ALTER gold.p1 utf8mb4 [id] id INT!; v INT",
            ),
            ("ALTER TABLE p1 DROP PARTITION p0, p1", "ALTER gold.p1 utf8mb4 [id] id INT!; v INT"),
            ("ALTER TABLE p1 TRUNCATE PARTITION p2", "ALTER gold.p1 utf8mb4 [id] id INT!; v INT"),
            (
                "ALTER TABLE p1 REORGANIZE PARTITION p3 INTO (PARTITION p3a VALUES LESS THAN (35), PARTITION p3b VALUES LESS THAN MAXVALUE)",
                "ALTER gold.p1 utf8mb4 [id] id INT!; v INT",
            ),
            ("ALTER TABLE p1 REMOVE PARTITIONING", "ALTER gold.p1 utf8mb4 [id] id INT!; v INT"),
            (
                "ALTER TABLE p1 ADD COLUMN w INT, ADD INDEX iw (w), ALGORITHM=INPLACE, LOCK=SHARED",
                "ALTER gold.p1 utf8mb4 [id] id INT!; v INT; w INT",
            ),
            (
                "ALTER TABLE p1 ADD COLUMN ins INT DEFAULT 4, ALGORITHM=INSTANT",
                "ALTER gold.p1 utf8mb4 [id] id INT!; v INT; w INT; ins INT =4",
            ),
            (
                "CREATE TABLE e1 (id INT PRIMARY KEY, e ENUM('a','b') DEFAULT 'a', v VARCHAR(10), x INT)",
                "CREATE gold.e1 utf8mb4 [id] id INT!; e ENUM(1) utf8mb4 =a; v VARCHAR(10) utf8mb4; x INT",
            ),
            (
                "ALTER TABLE e1 MODIFY e ENUM('a','b','c') NOT NULL DEFAULT 'c', MODIFY v VARCHAR(12) COLLATE gbk_bin",
                "ALTER gold.e1 utf8mb4 [id] id INT!; e ENUM(1) utf8mb4! =c; v VARCHAR(12) gbk; x INT",
            ),
            (
                "ALTER TABLE e1 ALTER x SET DEFAULT (1+1), ALTER v SET DEFAULT 'q'",
                "ALTER gold.e1 utf8mb4 [id] id INT!; e ENUM(1) utf8mb4! =c; v VARCHAR(12) gbk =q; x INT",
            ),
            (
                "ALTER TABLE e1 RENAME TO other.e1",
                "ALTER gold.e1 -> other.e1 utf8mb4 [id] id INT!; e ENUM(1) utf8mb4! =c; v VARCHAR(12) gbk =q; x INT",
            ),
            ("CREATE TABLE s1 (a INT PRIMARY KEY)", "CREATE gold.s1 utf8mb4 [a] a INT!"),
            (
                "CREATE TABLE s2 (b VARCHAR(3) PRIMARY KEY)",
                "CREATE gold.s2 utf8mb4 [b] b VARCHAR(3) utf8mb4!",
            ),
            (
                "RENAME TABLE s1 TO tmp, s2 TO s1, tmp TO s2",
                "Alter gold | ALTER gold.s2 -> gold.s1 utf8mb4 [b] b VARCHAR(3) utf8mb4! | ALTER gold.tmp -> gold.s2 utf8mb4 [a] a INT!",
            ),
            ("CREATE DATABASE ldb COLLATE latin1_swedish_ci", "Database ldb"),
            ("CREATE TABLE ldb.t (v VARCHAR(5))", "CREATE ldb.t latin1 [] v VARCHAR(5) latin1"),
            ("DROP DATABASE ldb", "Database ldb"),
            // DIFFERS: Debezium takes no character set from a table collation.
            (
                "CREATE TABLE col1 (v VARCHAR(5), w VARCHAR(5) COLLATE utf8mb4_bin) COLLATE latin1_swedish_ci",
                "CREATE gold.col1 latin1 [] v VARCHAR(5) latin1; w VARCHAR(5) utf8mb4",
            ),
            (
                "CREATE TABLE `sel1` ( `extra` int DEFAULT '5', `id` int NOT NULL, PRIMARY KEY (`id`) ) START TRANSACTION",
                "CREATE gold.sel1 utf8mb4 [id] extra INT =5; id INT!",
            ),
            (
                "ALTER TABLE col1 ADD CONSTRAINT pk PRIMARY KEY USING BTREE (v DESC)",
                "ALTER gold.col1 latin1 [v] v VARCHAR(5) latin1!; w VARCHAR(5) utf8mb4",
            ),
            (
                "ALTER TABLE u1 ADD COLUMN (x INT UNIQUE, y INT NOT NULL DEFAULT 1)",
                "ALTER gold.u1 utf8mb4 [b] a INT; b INT; x INT; y INT! =1",
            ),
            (
                "ALTER TABLE u1 ADD COLUMN g1 INT GENERATED ALWAYS AS (a+1) STORED NOT NULL COMMENT 'g', ADD COLUMN d1 DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
                "ALTER gold.u1 utf8mb4 [b] a INT; b INT; x INT; y INT! =1; g1 INT!; d1 DATETIME A =1970-01-01 00:00:00",
            ),
            (
                "ALTER TABLE u1 DROP COLUMN b",
                "ALTER gold.u1 utf8mb4 [] a INT; x INT; y INT! =1; g1 INT!; d1 DATETIME A =1970-01-01 00:00:00",
            ),
            // DIFFERS: Debezium leaves ASCII and UNICODE out.
            (
                "CREATE TABLE cs1 (a CHAR(5) CHARACTER SET latin1 COLLATE latin1_bin, b CHAR(5) ASCII, c CHAR(5) UNICODE, d VARCHAR(5) CHARACTER SET utf8mb3, e TEXT COLLATE ascii_bin) DEFAULT CHARSET=koi8r",
                "CREATE gold.cs1 koi8r [] a CHAR(5) latin1; b CHAR(5) latin1; c CHAR(5) ucs2; d VARCHAR(5) utf8mb3; e TEXT ascii",
            ),
            (
                "ALTER TABLE cs1 CONVERT TO CHARACTER SET latin1 COLLATE latin1_bin",
                "ALTER gold.cs1 latin1 [] a CHAR(5) latin1; b CHAR(5) latin1; c CHAR(5) latin1; d VARCHAR(5) latin1; e TEXT latin1",
            ),
            // DIFFERS: Debezium keeps the character set.
            (
                "ALTER TABLE cs1 CHARSET=utf8mb4",
                "ALTER gold.cs1 utf8mb4 [] a CHAR(5) latin1; b CHAR(5) latin1; c CHAR(5) latin1; d VARCHAR(5) latin1; e TEXT latin1",
            ),
        ],
    );
}

#[test]
fn mariadb_variants_give_what_debezium_gives() {
    story(
        &mariadb(),
        &[
            (
                "CREATE TABLE t_n (a INT PRIMARY KEY, j JSON, u VARCHAR(40) DEFAULT uuid(), i INT INVISIBLE DEFAULT 3, CHECK (a > 0))",
                "CREATE gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3",
            ),
            (
                "ALTER TABLE t_n ADD COLUMN IF NOT EXISTS y INT",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT",
            ),
            (
                "ALTER TABLE t_n ADD COLUMN IF NOT EXISTS c INT, DROP COLUMN IF EXISTS nosuch",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; c INT",
            ),
            // DIFFERS: Debezium replaces the column.
            (
                "ALTER TABLE t_n ADD COLUMN IF NOT EXISTS y BIGINT",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; c INT",
            ),
            (
                "ALTER TABLE t_n CHANGE COLUMN IF EXISTS c cc INT",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; cc INT",
            ),
            // DIFFERS: Debezium fails.
            (
                "ALTER TABLE t_n MODIFY COLUMN IF EXISTS nosuch2 INT",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; cc INT",
            ),
            (
                "ALTER TABLE t_n WAIT 5 ADD INDEX IF NOT EXISTS ix (y)",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; cc INT",
            ),
            (
                "ALTER TABLE IF EXISTS t_n ADD COLUMN z INT",
                "ALTER gold.t_n utf8mb4 [a] a INT!; j JSON; u VARCHAR(40) utf8mb4; i INT =3; y INT; cc INT; z INT",
            ),
            (
                "CREATE OR REPLACE TABLE t_or2 (a INT PRIMARY KEY)",
                "CREATE gold.t_or2 utf8mb4 [a] a INT!",
            ),
            (
                "RENAME TABLE IF EXISTS t_or2 TO t_or3, nosuch TO nosuch4",
                "ALTER gold.t_or2 -> gold.t_or3 utf8mb4 [a] a INT! | Alter gold",
            ),
            ("DROP TABLE IF EXISTS t_or3", "DROP gold.t_or3"),
            (
                "CREATE TABLE t_ck (a INT, b VARCHAR(10) COLLATE latin1_swedish_ci, c TEXT CHARACTER SET utf8 COLLATE utf8_bin, d INT AS (a+1) PERSISTENT, e TIMESTAMP, f TIMESTAMP) ENGINE=InnoDB PAGE_CHECKSUM=1 COMMENT='x'",
                "CREATE gold.t_ck utf8mb4 [] a INT; b VARCHAR(10) latin1; c TEXT utf8; d INT; e TIMESTAMP; f TIMESTAMP",
            ),
            (
                "CREATE TABLE `t_vw` ( `a` int(11) DEFAULT NULL )",
                "CREATE gold.t_vw utf8mb4 [] a INT(11)",
            ),
            (
                "CREATE TABLE t_like LIKE t_ck",
                "CREATE gold.t_like utf8mb4 [] a INT; b VARCHAR(10) latin1; c TEXT utf8; d INT; e TIMESTAMP; f TIMESTAMP",
            ),
            // DIFFERS: Debezium leaves the column nullable.
            (
                "ALTER TABLE t_ck ADD PRIMARY KEY IF NOT EXISTS (a)",
                "ALTER gold.t_ck utf8mb4 [a] a INT!; b VARCHAR(10) latin1; c TEXT utf8; d INT; e TIMESTAMP; f TIMESTAMP",
            ),
            (
                "ALTER TABLE t_ck RENAME COLUMN IF EXISTS d TO dd",
                "ALTER gold.t_ck utf8mb4 [a] a INT!; b VARCHAR(10) latin1; c TEXT utf8; dd INT; e TIMESTAMP; f TIMESTAMP",
            ),
            (
                "ALTER TABLE t_ck DROP PRIMARY KEY",
                "ALTER gold.t_ck utf8mb4 [] a INT!; b VARCHAR(10) latin1; c TEXT utf8; dd INT; e TIMESTAMP; f TIMESTAMP",
            ),
            ("CREATE DATABASE IF NOT EXISTS other CHARACTER SET latin1 COMMENT 'c'", "Other other"),
            ("CREATE OR REPLACE DATABASE other2", "Other other2"),
            ("DROP DATABASE other2", "Database other2"),
        ],
    );
}

#[test]
fn mariadb_keys_give_what_debezium_gives() {
    story(
        &mariadb(),
        &[
            ("CREATE TABLE k1 (a INT, b INT)", "CREATE gold.k1 utf8mb4 [] a INT; b INT"),
            ("ALTER TABLE k1 ADD PRIMARY KEY (a)", "ALTER gold.k1 utf8mb4 [a] a INT!; b INT"),
            (
                "CREATE TABLE k2 (a INT, b INT, PRIMARY KEY (a,b))",
                "CREATE gold.k2 utf8mb4 [a,b] a INT!; b INT!",
            ),
            ("CREATE TABLE k3 (a INT, b INT UNIQUE)", "CREATE gold.k3 utf8mb4 [b] a INT; b INT"),
            ("CREATE TABLE k4 (a INT NOT NULL)", "CREATE gold.k4 utf8mb4 [] a INT!"),
            (
                "ALTER TABLE k4 ADD UNIQUE INDEX IF NOT EXISTS x (a)",
                "ALTER gold.k4 utf8mb4 [a] a INT!",
            ),
            (
                "ALTER TABLE k4 ADD COLUMN b INT NOT NULL UNIQUE",
                "ALTER gold.k4 utf8mb4 [a] a INT!; b INT!",
            ),
            ("CREATE OR REPLACE UNIQUE INDEX y ON k4 (b)", "Other gold"),
            ("CREATE INDEX IF NOT EXISTS z ON k4 (a,b)", "Other gold"),
            ("DROP INDEX IF EXISTS z ON k4", "Other gold"),
            // DIFFERS: Debezium takes no character set from a table collation.
            ("CREATE TABLE k5 (a INT) COLLATE latin1_swedish_ci", "CREATE gold.k5 latin1 [] a INT"),
            (
                "ALTER TABLE k5 ADD v VARCHAR(4)",
                "ALTER gold.k5 latin1 [] a INT; v VARCHAR(4) latin1",
            ),
            // DIFFERS: Debezium keeps the character set.
            (
                "ALTER TABLE k5 DEFAULT CHARACTER SET gbk",
                "ALTER gold.k5 gbk [] a INT; v VARCHAR(4) latin1",
            ),
        ],
    );
}

#[test]
fn clauses_of_one_alter_are_taken_together() {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, i INT, k VARCHAR(5), x INT)";
    let created = "CREATE gold.t utf8mb4 [id] id INT!; i INT; k VARCHAR(5) utf8mb4; x INT";
    let cases = [
        (
            "ALTER TABLE t RENAME COLUMN i TO x, RENAME COLUMN x TO i",
            "ALTER gold.t utf8mb4 [id] id INT!; x INT; k VARCHAR(5) utf8mb4; i INT",
        ),
        (
            "ALTER TABLE t ADD COLUMN n INT AFTER j, CHANGE COLUMN i j INT",
            "ALTER gold.t utf8mb4 [id] id INT!; j INT; n INT; k VARCHAR(5) utf8mb4; x INT",
        ),
        (
            "ALTER TABLE t CHANGE i i BIGINT AFTER kk, CHANGE k kk VARCHAR(6)",
            "ALTER gold.t utf8mb4 [id] id INT!; kk VARCHAR(6) utf8mb4; i BIGINT; x INT",
        ),
        (
            "ALTER TABLE t RENAME COLUMN x TO y, ADD COLUMN x DATE",
            "ALTER gold.t utf8mb4 [id] id INT!; i INT; k VARCHAR(5) utf8mb4; y INT; x DATE",
        ),
        (
            "ALTER TABLE t DROP COLUMN x, ADD COLUMN x DATE FIRST",
            "ALTER gold.t utf8mb4 [id] x DATE; id INT!; i INT; k VARCHAR(5) utf8mb4",
        ),
        (
            "ALTER TABLE t MODIFY x INT AFTER i, MODIFY i INT AFTER x",
            "ALTER gold.t utf8mb4 [id] id INT!; x INT; i INT; k VARCHAR(5) utf8mb4",
        ),
        (
            "ALTER TABLE t ADD PRIMARY KEY (i), DROP PRIMARY KEY",
            "ALTER gold.t utf8mb4 [i] id INT!; i INT!; k VARCHAR(5) utf8mb4; x INT",
        ),
        (
            "ALTER TABLE t DROP PRIMARY KEY, CHANGE id a INT, CHANGE i id INT, ADD PRIMARY KEY (id, a)",
            "ALTER gold.t utf8mb4 [id,a] a INT!; id INT!; k VARCHAR(5) utf8mb4; x INT",
        ),
        (
            "ALTER TABLE t ADD c VARCHAR(3), CONVERT TO CHARACTER SET latin1, MODIFY k VARCHAR(7)",
            "ALTER gold.t latin1 [id] id INT!; i INT; k VARCHAR(7) latin1; x INT; c VARCHAR(3) latin1",
        ),
        (
            "ALTER TABLE t ADD c VARCHAR(3), DEFAULT CHARSET latin1",
            "ALTER gold.t latin1 [id] id INT!; i INT; k VARCHAR(5) utf8mb4; x INT; c VARCHAR(3) latin1",
        ),
        (
            "ALTER TABLE t CHANGE ID Id BIGINT, RENAME TO other.u, ADD z INT",
            "ALTER gold.t -> other.u utf8mb4 [Id] Id BIGINT!; i INT; k VARCHAR(5) utf8mb4; x INT; z INT",
        ),
        (
            "ALTER TABLE t RENAME t",
            "ALTER gold.t utf8mb4 [id] id INT!; i INT; k VARCHAR(5) utf8mb4; x INT",
        ),
    ];
    for (sql, expected) in cases {
        story(&mysql(), &[(table, created), (sql, expected)]);
    }
}

#[test]
fn a_statement_that_does_not_fit_the_table_is_an_error_that_changes_nothing() {
    let cases = [
        ("ALTER TABLE pre ADD a INT", "second column a at byte 16", "pre"),
        ("ALTER TABLE pre ADD b INT, ADD B INT", "second column b at byte 27", "pre"),
        ("ALTER TABLE pre RENAME COLUMN a TO id", "second column id at byte 16", "pre"),
        ("ALTER TABLE pre DROP b", "DROP COLUMN of unknown column b at byte 16", "pre"),
        ("ALTER TABLE pre MODIFY b INT", "CHANGE or MODIFY of unknown column b at byte 16", "pre"),
        (
            "ALTER TABLE pre RENAME COLUMN b TO c",
            "RENAME COLUMN of unknown column b at byte 16",
            "pre",
        ),
        (
            "ALTER TABLE pre ALTER b DROP DEFAULT",
            "ALTER COLUMN of unknown column b at byte 16",
            "pre",
        ),
        ("ALTER TABLE pre ADD c INT AFTER b", "AFTER of unknown column b at byte 16", "pre"),
        (
            "ALTER TABLE pre ADD PRIMARY KEY (b)",
            "PRIMARY KEY of unknown column b at byte 16",
            "pre",
        ),
        ("CREATE TABLE t (a INT, A INT)", "second column A at byte 23", "t"),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (b))",
            "PRIMARY KEY of unknown column b at byte 13",
            "t",
        ),
        ("CREATE TABLE t LIKE nosuch", "table gold.nosuch to be like is not known at byte 20", "t"),
        (
            "CREATE TABLE t AS SELECT 1",
            "create without a column list (statement-based logging?) at byte 13",
            "t",
        ),
    ];
    for (sql, expected, table) in cases {
        let mut tables = model();
        let before = tables.clone();
        let expected = format!("error: {expected} of the statement on table gold.{table}");
        assert_eq!(run(sql, &mysql(), &mut tables), expected, "{sql}");
        assert_eq!(tables, before, "{sql}");
    }
}

#[test]
fn a_table_without_a_database_is_an_error() {
    let context = DdlContext::default();
    for sql in [
        "CREATE TABLE t (a INT)",
        "DROP TABLE gold.a, t",
        "RENAME TABLE gold.pre TO gold.b, t TO u",
    ] {
        let mut tables = model();
        let before = tables.clone();
        let error = apply_statement(sql, &context, &mut tables).unwrap_err();
        assert!(error.to_string().starts_with("no database for table t"), "{sql}: {error}");
        assert_eq!(tables, before, "{sql}");
    }
}

#[test]
fn statements_on_unknown_tables_change_nothing() {
    story(
        &mysql(),
        &[
            ("ALTER TABLE nosuch ADD a INT", "Other gold"),
            ("CREATE UNIQUE INDEX i ON nosuch (a)", "Other gold"),
            ("RENAME TABLE nosuch TO other.n", "Alter other"),
            ("TRUNCATE nosuch", "Truncate gold"),
            ("DROP TABLE nosuch", "DROP gold.nosuch"),
        ],
    );
}

#[test]
fn a_table_that_is_created_again_replaces_the_one_that_is_known() {
    story(
        &mariadb(),
        &[
            ("CREATE TABLE IF NOT EXISTS pre (b INT)", "Other gold"),
            ("CREATE OR REPLACE TABLE pre (b INT)", "CREATE gold.pre utf8mb4 [] b INT"),
            ("CREATE TABLE pre (c INT)", "CREATE gold.pre utf8mb4 [] c INT"),
            ("CREATE TABLE IF NOT EXISTS pre2 LIKE pre", "CREATE gold.pre2 utf8mb4 [] c INT"),
            ("CREATE TABLE IF NOT EXISTS pre2 LIKE nosuch", "Other gold"),
        ],
    );
}

#[test]
fn unique_columns_stand_for_a_missing_key() {
    let cases = [
        ("a INT, b INT UNIQUE", "[b]"),
        ("a INT UNIQUE, b INT PRIMARY KEY", "[b]"),
        ("a INT NOT NULL, b INT, UNIQUE (b), UNIQUE k (a)", "[a]"),
        (
            "a INT NOT NULL, b INT NOT NULL, UNIQUE KEY k USING HASH (b DESC, a(3)), UNIQUE (a)",
            "[b,a]",
        ),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE ((a+b)), UNIQUE (b)", "[b]"),
        ("a INT NOT NULL, UNIQUE (b), b INT NOT NULL", "[]"),
        ("a INT NOT NULL, UNIQUE (a), b INT, PRIMARY KEY (b)", "[b]"),
        ("a INT, b INT, CONSTRAINT PRIMARY KEY USING BTREE (B, a)", "[b,a]"),
        (
            "a INT, KEY (a), FULLTEXT f (a), CONSTRAINT c CHECK (a > 0), FOREIGN KEY (a) REFERENCES x (a)",
            "[]",
        ),
    ];
    for (columns, key) in cases {
        let mut tables = model();
        apply_statement(&format!("CREATE TABLE t ({columns})"), &mysql(), &mut tables).unwrap();
        let table = tables.get(&TableId::new("gold", "t")).unwrap();
        assert_eq!(format!("[{}]", table.primary_key.join(",")), key, "{columns}");
    }
}

#[test]
fn a_key_column_stays_not_null_when_it_is_redefined() {
    story(
        &mysql(),
        &[
            ("ALTER TABLE pre MODIFY id BIGINT", "ALTER gold.pre utf8mb4 [id] id BIGINT!; a INT"),
            (
                "ALTER TABLE pre CHANGE id i BIGINT FIRST",
                "ALTER gold.pre utf8mb4 [i] i BIGINT!; a INT",
            ),
            (
                "ALTER TABLE pre DROP PRIMARY KEY, MODIFY i BIGINT",
                "ALTER gold.pre utf8mb4 [] i BIGINT; a INT",
            ),
            (
                "ALTER TABLE pre MODIFY i BIGINT NOT NULL UNIQUE",
                "ALTER gold.pre utf8mb4 [i] i BIGINT!; a INT",
            ),
            // A unique index only stood for a key.
            (
                "ALTER TABLE pre MODIFY i BIGINT, ADD PRIMARY KEY (a)",
                "ALTER gold.pre utf8mb4 [a] i BIGINT; a INT!",
            ),
        ],
    );
}

#[test]
fn column_types_have_debeziums_names_and_lengths() {
    let cases = [
        ("TINYINT(1)", "TINYINT(1)"),
        ("int ( 11 ) unsigned", "INT UNSIGNED(11)"),
        ("INT ZEROFILL", "INT UNSIGNED ZEROFILL"),
        ("INT UNSIGNED ZEROFILL", "INT UNSIGNED ZEROFILL"),
        ("DECIMAL", "DECIMAL(10,0)"),
        ("DEC(19.5)", "DEC(19,0)"),
        ("NUMERIC(8,3) UNSIGNED", "NUMERIC UNSIGNED(8,3)"),
        ("FLOAT4", "FLOAT"),
        ("DOUBLE PRECISION(5,2)", "DOUBLE PRECISION(5,2)"),
        ("BIT", "BIT(1)"),
        ("BIT(5)", "BIT(5)"),
        ("CHAR(0)", "CHAR(10) utf8mb4"),
        ("VARCHAR(9) BINARY", "VARCHAR BINARY(9) utf8mb4"),
        ("NCHAR VARYING(3)", "NCHAR VARYING(3) utf8"),
        ("NATIONAL VARCHAR(3) CHARACTER SET latin1", "NATIONAL VARCHAR(3) utf8"),
        ("CHAR VARYING(3)", "CHAR VARYING(3) utf8mb4"),
        ("LONG", "LONG utf8mb4"),
        ("LONG VARCHAR", "LONG VARCHAR utf8mb4"),
        ("LONG VARBINARY", "LONG VARBINARY"),
        ("LONGTEXT", "LONGTEXT utf8mb4"),
        ("TEXT(4294967295)", "TEXT(2147483647) utf8mb4"),
        ("VARCHAR(5) COLLATE latin1_bin", "VARCHAR(5) latin1"),
        ("VARCHAR(5) COLLATE latin1_bin CHARSET 'LATIN1'", "VARCHAR(5) latin1"),
        ("VARCHAR(5) COLLATE uca1400_ai_ci", "VARCHAR(5) utf8mb4"),
        ("VARCHAR(5) CHARACTER SET DEFAULT", "VARCHAR(5) utf8mb4"),
        ("CHAR BYTE", "BINARY(1)"),
        ("CHAR(3) CHARACTER SET binary", "BINARY(3)"),
        ("VARCHAR(3) CHARSET binary", "VARBINARY(3)"),
        ("TEXT CHARACTER SET binary", "BLOB"),
        ("MEDIUMTEXT BYTE", "MEDIUMBLOB"),
        ("BINARY", "BINARY"),
        ("TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("YEAR(4)", "YEAR(4)"),
        ("ENUM('a','b')", "ENUM(1) utf8mb4"),
        ("SET('a','b','c')", "SET(5) utf8mb4"),
        ("JSON", "JSON"),
        ("POINT SRID 4326", "POINT"),
        ("VECTOR(3)", "VECTOR(3)"),
        ("INET6", "INET6"),
        ("UUID", "UUID"),
        ("VARCHAR(9) COMPRESSED", "VARCHAR(9) utf8mb4"),
        ("VARCHAR(9) COMPRESSED=zlib CHARACTER SET latin1", "VARCHAR(9) latin1"),
        ("GEOMETRY REF_SYSTEM_ID=4326", "GEOMETRY"),
        ("FANCY(1, 'x')", "FANCY"),
    ];
    for (definition, expected) in cases {
        let sql = format!("CREATE TABLE t (c {definition})");
        let created = format!("CREATE gold.t utf8mb4 [] c {expected}");
        assert_eq!(run(&sql, &mariadb(), &mut model()), created, "{definition}");
    }
}

#[test]
fn column_attributes_count_as_far_as_the_model_knows_them() {
    let cases = [
        ("INT NOT NULL NULL", "INT"),
        ("INT NULL NOT NULL", "INT!"),
        ("INT NOT NULL AUTO_INCREMENT UNIQUE", "INT! A"),
        ("SERIAL", "BIGINT UNSIGNED! A"),
        ("BIGINT UNSIGNED SERIAL DEFAULT VALUE", "BIGINT UNSIGNED! A"),
        ("DATETIME(3) ON UPDATE NOW(3)", "DATETIME(3) A"),
        ("INT REFERENCES comment (id) ON DELETE SET NULL ON UPDATE SET DEFAULT", "INT"),
        (
            "INT NOT NULL REFERENCES p (id) MATCH FULL ON UPDATE SET NULL ON DELETE NO ACTION",
            "INT!",
        ),
        ("INT GENERATED ALWAYS AS (a + (b)) STORED NOT NULL", "INT!"),
        ("INT AS ('a,b)') VIRTUAL", "INT"),
        ("INT COLUMN_FORMAT DEFAULT STORAGE DEFAULT", "INT"),
        ("INT CHECK (c > 0) NOT NULL INVISIBLE", "INT!"),
        ("INT CONSTRAINT ck CHECK (c > 0) NOT ENFORCED", "INT"),
        ("INT ENGINE_ATTRIBUTE='{\"NOT\": \"NULL\"}' SECONDARY_ENGINE_ATTRIBUTE 'x'", "INT"),
        ("INT COMMENT 'NOT NULL, x INT' KEY_BLOCK_SIZE 4", "INT"),
        ("INT WITHOUT SYSTEM VERSIONING", "INT"),
    ];
    for (definition, expected) in cases {
        let shown =
            run(&format!("CREATE TABLE t (c {definition}, d INT)"), &mariadb(), &mut model());
        let columns = shown.split("] ").nth(1).unwrap_or(&shown);
        assert_eq!(columns, format!("c {expected}; d INT"), "{definition}");
    }
}

#[test]
fn mariadbs_computed_columns_are_known() {
    let sql = "CREATE TABLE t (a INT, v INT AS (a + 1), w INT GENERATED ALWAYS AS (a) VIRTUAL NOT NULL COMMENT 'STORED', \
               s INT AS (a) STORED, p INT AS (a) PERSISTENT UNIQUE, r INT AS (a) STORED)";
    let names = |context: &DdlContext| {
        let mut tables = model();
        run(sql, context, &mut tables);
        run(
            "ALTER TABLE t MODIFY r INT, CHANGE w w INT, RENAME COLUMN v TO z",
            context,
            &mut tables,
        );
        let table = tables.iter().find(|table| table.id.table == "t").unwrap();
        let columns = table.columns.iter().filter(|column| column.is_computed);
        columns.map(|column| column.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mariadb()), ["z", "s", "p"]);
    // Images of MySQL have them.
    assert_eq!(names(&DdlContext { flavor: Flavor::MySql, ..mariadb() }), Vec::<String>::new());
}

#[test]
fn defaults_are_kept_as_their_value() {
    let cases = [
        ("VARCHAR(9) DEFAULT ''", Some("")),
        ("VARCHAR(9) DEFAULT 'it''s'", Some("it's")),
        (r"VARCHAR(9) DEFAULT 'a\'b\\'", Some(r"a'b\")),
        ("VARCHAR(9) DEFAULT \"dq'x\"", Some("dq'x")),
        ("VARCHAR(9) DEFAULT 'a' 'b'", Some("ab")),
        ("VARCHAR(9) DEFAULT _utf8mb4'x'", Some("x")),
        ("VARCHAR(9) DEFAULT N'x'", Some("x")),
        ("VARCHAR(9) DEFAULT TRUE", Some("TRUE")),
        ("VARCHAR(9) DEFAULT 0x6162", Some("ab")),
        ("INT DEFAULT -1", Some("-1")),
        ("INT DEFAULT + 1", Some("+1")),
        ("DOUBLE DEFAULT 1e3", Some("1e3")),
        ("BIGINT UNSIGNED DEFAULT 0x10", Some("16")),
        ("BIT(4) DEFAULT b'101'", Some("101")),
        ("BIT(4) DEFAULT 0b101", Some("101")),
        ("BIT(8) DEFAULT 0x05", Some("101")),
        ("BIT(8) DEFAULT 5", Some("101")),
        ("BIT(8) DEFAULT x'05'", Some("101")),
        ("VARCHAR(9) DEFAULT x'6162'", Some("ab")),
        ("INT DEFAULT b'11'", Some("3")),
        ("CHAR(2) DEFAULT 0b1100001", Some("a")),
        ("ENUM('a') DEFAULT 'a '", Some("a")),
        ("BINARY(2) DEFAULT X'4142'", Some("4142")),
        (
            "DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
            Some("1970-01-01 00:00:00"),
        ),
        (
            "TIMESTAMP DEFAULT current_timestamp() ON UPDATE current_timestamp()",
            Some("1970-01-01 00:00:00"),
        ),
        ("DATE DEFAULT DATE'2024-02-29'", Some("DATE'2024-02-29'")),
        ("INT DEFAULT NULL", None),
        ("INT DEFAULT (1 + (2))", None),
        ("VARCHAR(40) DEFAULT uuid()", None),
        ("INT DEFAULT nextval(`d`.`s`)", None),
        ("INT DEFAULT NEXT VALUE FOR d.s", None),
    ];
    for (definition, expected) in cases {
        for (null, implied) in [("", DefaultValue::Null), (" NOT NULL", DefaultValue::Absent)] {
            let mut tables = model();
            let sql = format!("CREATE TABLE t (c {definition}{null})");
            apply_statement(&sql, &mariadb(), &mut tables).unwrap();
            let table = tables.get(&TableId::new("gold", "t")).unwrap();
            let expected =
                expected.map_or(implied, |text| DefaultValue::Expression(text.to_owned()));
            assert_eq!(table.columns[0].default, expected, "{sql}");
        }
    }
}

#[test]
fn key_columns_and_plain_columns_have_the_right_implied_default() {
    let mut tables = model();
    apply_statement(
        "CREATE TABLE t (a INT, b INT NOT NULL, c INT, PRIMARY KEY (a))",
        &mysql(),
        &mut tables,
    )
    .unwrap();
    let defaults = |tables: &Tables| -> Vec<DefaultValue> {
        tables
            .get(&TableId::new("gold", "t"))
            .unwrap()
            .columns
            .iter()
            .map(|column| column.default.clone())
            .collect()
    };
    assert_eq!(defaults(&tables), [DefaultValue::Absent, DefaultValue::Absent, DefaultValue::Null]);
    apply_statement("ALTER TABLE t ALTER c DROP DEFAULT", &mysql(), &mut tables).unwrap();
    assert_eq!(defaults(&tables)[2], DefaultValue::Absent);
    apply_statement("ALTER TABLE t ALTER c SET DEFAULT NULL", &mysql(), &mut tables).unwrap();
    assert_eq!(defaults(&tables)[2], DefaultValue::Null);
}

#[test]
fn labels_keep_their_sql_text_in_single_quotes() {
    let cases = [
        (mysql(), r"'a','it''s','b\'c','d\\e'", vec!["'a'", "'it''s'", r"'b\'c'", r"'d\\e'"]),
        (mysql(), r#""x","it's","q""q""#, vec!["'x'", "'it''s'", r#"'q"q'"#]),
        (mysql(), "N'n', _utf8mb4'u', x'41', _latin1 0x42", vec!["'n'", "'u'", "'A'", "'B'"]),
        (
            DdlContext { sql_mode: SqlMode(SqlMode::NO_BACKSLASH_ESCAPES), ..mysql() },
            r"'a\','b'",
            vec![r"'a\\'", "'b'"],
        ),
    ];
    for (context, labels, expected) in cases {
        let mut tables = model();
        apply_statement(&format!("CREATE TABLE t (e ENUM({labels}))"), &context, &mut tables)
            .unwrap();
        assert_eq!(
            tables.get(&TableId::new("gold", "t")).unwrap().columns[0].enum_values,
            expected,
            "{labels}"
        );
    }
}

#[test]
fn labels_are_those_that_the_server_makes_of_them() {
    let cases = [
        ("ENUM('a ', 'b  ', '')", "'a','b',''"),
        ("ENUM('a ') CHARACTER SET binary", "'a '"),
        ("SET('ü', 'a') CHARACTER SET ascii", "'?','a'"),
        ("ENUM('\u{1f600}') CHARACTER SET utf8mb3", "'?'"),
        ("ENUM('\u{1f600}') CHARACTER SET utf8mb4", "'\u{1f600}'"),
    ];
    for (definition, expected) in cases {
        let mut tables = model();
        apply_statement(&format!("CREATE TABLE t (e {definition})"), &mysql(), &mut tables)
            .unwrap();
        let table = tables.get(&TableId::new("gold", "t")).unwrap();
        assert_eq!(table.columns[0].enum_values.join(","), expected, "{definition}");
    }
}

#[test]
fn auto_increment_means_not_null_unless_null_follows() {
    story(
        &mysql(),
        &[
            (
                "CREATE TABLE ai (a INT AUTO_INCREMENT, b INT, KEY (a))",
                "CREATE gold.ai utf8mb4 [] a INT! A; b INT",
            ),
            (
                "ALTER TABLE ai MODIFY a BIGINT NULL AUTO_INCREMENT",
                "ALTER gold.ai utf8mb4 [] a BIGINT! A; b INT",
            ),
            (
                "ALTER TABLE ai MODIFY a BIGINT AUTO_INCREMENT NULL",
                "ALTER gold.ai utf8mb4 [] a BIGINT A; b INT",
            ),
        ],
    );
}

#[test]
fn real_is_float_where_the_session_says_so() {
    let context = DdlContext { sql_mode: SqlMode(SqlMode::REAL_AS_FLOAT), ..mysql() };
    story(
        &context,
        &[(
            "CREATE TABLE r (a REAL, b REAL(9,3), c DOUBLE)",
            "CREATE gold.r utf8mb4 [] a FLOAT; b FLOAT(9,3); c DOUBLE",
        )],
    );
}

#[test]
fn a_long_column_may_have_a_character_set() {
    story(
        &mysql(),
        &[(
            "CREATE TABLE l (a LONG CHARACTER SET latin1, b LONG CHAR VARYING, c LONG CHARSET ascii NULL)",
            "CREATE gold.l utf8mb4 [] a LONG latin1; b LONG CHAR VARYING utf8mb4; c LONG ascii",
        )],
    );
}

#[test]
fn timestamps_get_the_defaults_that_the_session_implies() {
    let defaults = |context: &DdlContext, sql: &[&str]| -> String {
        let mut tables = model();
        for sql in sql {
            apply_statement(sql, context, &mut tables).unwrap();
        }
        let table = tables.get(&TableId::new("gold", "t")).unwrap();
        let show = |column: &Column| {
            let null = if column.optional { "NULL" } else { "NOT NULL" };
            let auto = if column.auto_incremented { " A" } else { "" };
            match &column.default {
                DefaultValue::Expression(text) => {
                    format!("{} {null} {}{auto}", column.name, text.get(..4).unwrap())
                }
                DefaultValue::Absent | DefaultValue::Null => {
                    format!("{} {null}{auto}", column.name)
                }
            }
        };
        table.columns.iter().map(show).collect::<Vec<_>>().join(", ")
    };
    let create = "CREATE TABLE t (i INT, a TIMESTAMP, b TIMESTAMP NOT NULL, c TIMESTAMP NULL, \
                  d TIMESTAMP ON UPDATE NOW(), e TIMESTAMP DEFAULT '2020-01-01')";
    let implicit = DdlContext { implicit_timestamp_defaults: true, ..mysql() };
    // As SHOW CREATE TABLE of MySQL 9.7 and MariaDB 10.11 has them.
    assert_eq!(
        defaults(&implicit, &[create]),
        "i NULL, a NOT NULL 1970 A, b NOT NULL 0000, c NULL, d NOT NULL 0000 A, e NOT NULL 2020"
    );
    assert_eq!(
        defaults(&mysql(), &[create]),
        "i NULL, a NULL, b NOT NULL, c NULL, d NULL A, e NULL 2020"
    );
    // A new first column is made the automatic one; what was there keeps its default.
    let first = "ALTER TABLE t ADD b TIMESTAMP FIRST, ADD c TIMESTAMP";
    assert_eq!(
        defaults(&implicit, &["CREATE TABLE t (a TIMESTAMP)", first]),
        "b NOT NULL 1970 A, a NOT NULL 1970 A, c NOT NULL 0000"
    );
    let key = ["CREATE TABLE t (a TIMESTAMP NULL DEFAULT NULL, PRIMARY KEY (a))"];
    assert_eq!(defaults(&implicit, &key), "a NOT NULL");
    let on_update = ["CREATE TABLE t (a TIMESTAMP NOT NULL ON UPDATE NOW())"];
    assert_eq!(defaults(&mysql(), &on_update), "a NOT NULL A");
    assert_eq!(defaults(&mariadb(), &on_update), "a NOT NULL 0000 A");
}

#[test]
fn a_logged_create_or_replace_that_failed_has_dropped_the_table() {
    let failed = DdlContext { failed: true, ..mariadb() };
    story(
        &failed,
        &[
            ("CREATE TABLE pre (a INT)", "Other gold"),
            ("CREATE OR REPLACE TABLE pre (a INT)", "DROP gold.pre"),
            ("CREATE OR REPLACE TABLE pre LIKE nosuch", "Other gold"),
        ],
    );
}

#[test]
fn converting_to_the_default_takes_that_of_the_sessions_database_on_mysql() {
    for (flavor, expected) in [(Flavor::MySql, "latin1"), (Flavor::MariaDb, "utf8mb4")] {
        let context = DdlContext { flavor, ..DdlContext::in_database("latin") };
        let mut tables = model();
        tables.set_database_charset("latin", Some("latin1".to_owned()));
        for sql in [
            "CREATE TABLE gold.t (a TEXT CHARACTER SET ucs2)",
            "ALTER TABLE gold.t CONVERT TO CHARSET DEFAULT",
        ] {
            apply_statement(sql, &context, &mut tables).unwrap();
        }
        let table = tables.get(&TableId::new("gold", "t")).unwrap();
        assert_eq!(table.default_charset.as_deref(), Some(expected));
        assert_eq!(table.columns[0].charset.as_deref(), Some(expected));
    }
}

#[test]
fn the_options_behind_start_transaction_count() {
    story(
        &mysql(),
        &[(
            "CREATE TABLE `s` (\n  `a` int NOT NULL,\n  `b` text\n) START TRANSACTION DEFAULT CHARSET=latin1",
            "CREATE gold.s latin1 [] a INT!; b TEXT latin1",
        )],
    );
}

#[test]
fn mariadb_modifies_a_column_that_the_statement_adds() {
    story(
        &mariadb(),
        &[
            (
                "ALTER TABLE pre ADD b BIT(8), ADD c INT, MODIFY b TEXT NOT NULL AFTER id, MODIFY c BIGINT",
                "ALTER gold.pre utf8mb4 [id] id INT!; b TEXT utf8mb4!; a INT; c BIGINT",
            ),
            (
                "ALTER TABLE pre MODIFY d INT, ADD d INT",
                "error: CHANGE or MODIFY of unknown column d at byte 16 of the statement on table gold.pre",
            ),
        ],
    );
    story(
        &mysql(),
        &[(
            "ALTER TABLE pre ADD b BIT(8), MODIFY b TEXT",
            "error: CHANGE or MODIFY of unknown column b at byte 30 of the statement on table gold.pre",
        )],
    );
}

#[test]
fn mariadb_converts_json_like_text_and_leaves_binary_alone() {
    story(
        &mariadb(),
        &[
            ("CREATE TABLE j (a JSON)", "CREATE gold.j utf8mb4 [] a JSON"),
            (
                "ALTER TABLE j CONVERT TO CHARACTER SET latin1",
                "ALTER gold.j latin1 [] a LONGTEXT latin1",
            ),
            (
                "CREATE TABLE b (a SET('x') CHARSET binary)",
                "CREATE gold.b utf8mb4 [] a SET(1) binary",
            ),
            (
                "ALTER TABLE b CHARACTER SET = ucs2, CONVERT TO CHARACTER SET latin1",
                "ALTER gold.b ucs2 [] a SET(1) binary",
            ),
        ],
    );
}

#[test]
fn comments_are_kept_on_request() {
    let context = DdlContext { comments: true, ..mysql() };
    let mut tables = model();
    let comments = |tables: &Tables| {
        let table = tables.get(&TableId::new("gold", "t")).unwrap();
        (
            table.comment.clone(),
            table.columns.iter().map(|column| column.comment.clone()).collect::<Vec<_>>(),
        )
    };
    apply_statement(
        "CREATE TABLE t (a INT COMMENT 'it''s', b INT) COMMENT='x'",
        &context,
        &mut tables,
    )
    .unwrap();
    assert_eq!(comments(&tables), (Some("x".to_owned()), vec![Some("it's".to_owned()), None]));
    apply_statement("ALTER TABLE t COMMENT 'y', MODIFY b INT COMMENT 'b'", &context, &mut tables)
        .unwrap();
    assert_eq!(
        comments(&tables),
        (Some("y".to_owned()), vec![Some("it's".to_owned()), Some("b".to_owned())])
    );
    apply_statement("ALTER TABLE t COMMENT 'z', MODIFY a INT COMMENT 'a'", &mysql(), &mut tables)
        .unwrap();
    assert_eq!(comments(&tables), (Some("y".to_owned()), vec![None, Some("b".to_owned())]));
}

#[test]
fn the_character_set_comes_from_the_nearest_that_says_one() {
    story(
        &mysql(),
        &[
            ("CREATE DATABASE a CHARACTER SET = latin2 COLLATE latin2_bin", "Database a"),
            ("CREATE TABLE a.t (c TEXT)", "CREATE a.t latin2 [] c TEXT latin2"),
            ("ALTER DATABASE a COLLATE 'cp1251_bin'", "Other gold"),
            ("CREATE TABLE a.u (c TEXT)", "CREATE a.u cp1251 [] c TEXT cp1251"),
            ("CREATE DATABASE IF NOT EXISTS a CHARACTER SET koi8r", "Database a"),
            ("CREATE TABLE a.v (c TEXT) CHARSET DEFAULT", "CREATE a.v cp1251 [] c TEXT cp1251"),
            ("SET character_set_server=gbk, collation_server=gbk_bin", "Set "),
            ("CREATE SCHEMA b", "Database b"),
            (
                "CREATE TABLE b.t (c TEXT, d TEXT COLLATE sjis_bin)",
                "CREATE b.t gbk [] c TEXT gbk; d TEXT sjis",
            ),
            ("CREATE TABLE nowhere.t (c TEXT)", "CREATE nowhere.t gbk [] c TEXT gbk"),
            ("DROP SCHEMA b", "Database b"),
            ("SET @@global.character_set_server = 'latin1'", "Set "),
            ("CREATE TABLE b.t (c TEXT)", "CREATE b.t latin1 [] c TEXT latin1"),
            ("ALTER DATABASE DEFAULT CHARACTER SET greek", "Other gold"),
            ("CREATE TABLE t (c TEXT)", "CREATE gold.t greek [] c TEXT greek"),
            ("SET @character_set_server = 'hebrew', NAMES utf8mb4", "Set "),
            ("CREATE TABLE nowhere.u (c TEXT)", "CREATE nowhere.u latin1 [] c TEXT latin1"),
            (
                "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT COLLATE hp8_bin",
                "ALTER gold.t hp8 [] c TEXT hp8",
            ),
            ("ALTER TABLE t CONVERT TO CHARACTER SET binary", "ALTER gold.t binary [] c BLOB"),
        ],
    );
}

#[test]
fn a_new_database_gets_the_character_set_of_the_session_that_makes_it() {
    let context = DdlContext { server_charset: Some("big5".to_owned()), ..mysql() };
    story(
        &context,
        &[
            ("CREATE DATABASE n", "Database n"),
            ("CREATE TABLE n.t (c TEXT)", "CREATE n.t big5 [] c TEXT big5"),
            ("CREATE TABLE t (c TEXT)", "CREATE gold.t utf8mb4 [] c TEXT utf8mb4"),
        ],
    );
}

#[test]
fn more_columns_or_clauses_than_a_server_accepts_are_refused() {
    let columns: Vec<String> = (0..4099).map(|at| format!("c{at} INT")).collect();
    let create = run(&format!("CREATE TABLE t ({})", columns.join(",")), &mysql(), &mut model());
    assert!(create.starts_with("error: statement of more than 4098 columns at byte"), "{create}");
    let alter =
        run(&format!("ALTER TABLE pre ADD {}", columns.join(", ADD ")), &mysql(), &mut model());
    assert!(alter.starts_with("error: statement of more than 4098 columns at byte"), "{alter}");
    let clauses =
        run(&format!("ALTER TABLE pre FORCE{}", ", FORCE".repeat(70_000)), &mysql(), &mut model());
    assert!(
        clauses.starts_with("error: statement of more than 65536 clauses at byte"),
        "{clauses}"
    );
}

#[test]
fn a_versioned_table_without_period_columns_has_two_hidden_ones_at_its_end() {
    let hidden = "row_start TIMESTAMP ROW START(6)!; row_end TIMESTAMP ROW END(6)!";
    let expected =
        |verb: &str, columns: &str| format!("{verb} gold.t utf8mb4 [] {columns}; {hidden}");
    let period = "rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START, re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, \
                  PERIOD FOR SYSTEM_TIME (rs, re)";
    story(
        &mariadb(),
        &[
            ("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", &expected("CREATE", "a INT")),
            ("ALTER TABLE t ADD b INT, ADD c INT FIRST", &expected("ALTER", "c INT; a INT; b INT")),
            (
                "ALTER TABLE t DROP SYSTEM VERSIONING, DROP c",
                "ALTER gold.t utf8mb4 [] a INT; b INT",
            ),
            ("ALTER TABLE t ADD SYSTEM VERSIONING", &expected("ALTER", "a INT; b INT")),
            (
                "CREATE OR REPLACE TABLE t (a INT WITH SYSTEM VERSIONING, b INT WITHOUT SYSTEM VERSIONING)",
                &expected("CREATE", "a INT; b INT"),
            ),
            (
                &format!("CREATE OR REPLACE TABLE t (a INT, {period}) WITH SYSTEM VERSIONING"),
                "CREATE gold.t utf8mb4 [] a INT; rs TIMESTAMP(6); re TIMESTAMP(6)",
            ),
        ],
    );
}

#[test]
fn sequences_are_known_and_are_no_tables() {
    let mut tables = model();
    let id = TableId::new("gold", "sq");
    assert_eq!(
        run("CREATE OR REPLACE SEQUENCE sq START WITH 5", &mariadb(), &mut tables),
        "Other gold"
    );
    assert!(tables.is_sequence(&id));
    assert_eq!(tables.get(&id), None);
    assert_eq!(run("DROP SEQUENCE IF EXISTS sq", &mariadb(), &mut tables), "Other gold");
    assert!(!tables.is_sequence(&id));
}

#[test]
fn a_partition_that_becomes_a_table_has_the_tables_columns() {
    story(
        &mariadb(),
        &[
            (
                "ALTER TABLE pre CONVERT PARTITION p0 TO TABLE p0",
                "ALTER gold.pre utf8mb4 [id] id INT!; a INT + CREATE gold.p0 utf8mb4 [id] id INT!; a INT",
            ),
            (
                "ALTER TABLE pre CONVERT TABLE p0 TO PARTITION p0 VALUES LESS THAN (10)",
                "ALTER gold.pre utf8mb4 [id] id INT!; a INT + DROP gold.p0",
            ),
        ],
    );
}

#[test]
fn clauses_that_say_nothing_of_columns_change_nothing() {
    let clauses = [
        "ENGINE=InnoDB",
        "ENGINE InnoDB ROW_FORMAT=DYNAMIC, STATS_AUTO_RECALC 0",
        "AUTO_INCREMENT 7 FORCE",
        "DATA DIRECTORY='/x' INDEX DIRECTORY '/y'",
        "DEFAULT ENCRYPTION='N'",
        "UNION=(a, b)",
        "TABLESPACE ts STORAGE DISK",
        "NEW_OPTION = -1",
        "`engine option`='x'",
        "ORDER BY id, a DESC",
        "DISABLE KEYS",
        "DISCARD TABLESPACE",
        "DISCARD PARTITION p0, p1 TABLESPACE",
        "SECONDARY_LOAD",
        "ALGORITHM=INPLACE, LOCK=NONE",
        "RENAME INDEX a TO b, RENAME KEY c TO d",
        "ALTER INDEX a INVISIBLE, ALTER CHECK c NOT ENFORCED, ALTER CONSTRAINT c ENFORCED, ALTER a SET INVISIBLE",
        "ADD INDEX (a), ADD KEY k USING BTREE (a), ADD FULLTEXT (a), ADD SPATIAL KEY (a), ADD VECTOR INDEX (a)",
        "ADD CONSTRAINT IF NOT EXISTS c CHECK (a > 0), ADD COLUMN IF NOT EXISTS (a BIGINT), DROP INDEX IF EXISTS i",
        "ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES t (a) ON DELETE CASCADE, ADD CHECK (a > 0)",
        "DROP INDEX a, DROP KEY b, DROP FOREIGN KEY c, DROP CHECK d, DROP CONSTRAINT e, DROP PERIOD FOR p",
        "ADD PARTITION (PARTITION p2 VALUES LESS THAN (30) COMMENT = 'x'), ALGORITHM=INPLACE",
        "ADD PARTITION PARTITIONS 2",
        "DROP PARTITION p0, p1",
        "REORGANIZE PARTITION p0, p1 INTO (PARTITION n VALUES LESS THAN (30))",
        "EXCHANGE PARTITION p0 WITH TABLE x WITHOUT VALIDATION",
        "COALESCE PARTITION 1",
        "TRUNCATE PARTITION ALL",
        "REMOVE PARTITIONING",
        "ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES IN (1))",
        "PARTITION BY LINEAR KEY ALGORITHM=2 (id) PARTITIONS 3",
    ];
    for clause in clauses {
        let unchanged = "ALTER gold.pre utf8mb4 [id] id INT!; a INT";
        let sql = format!("ALTER TABLE pre {clause}");
        assert_eq!(run(&sql, &mariadb(), &mut model()), unchanged, "{sql}");
        let with_column = "ALTER gold.pre utf8mb4 [id] id INT!; a INT; z INT";
        let sql = format!("ALTER TABLE pre ADD z INT, {clause}");
        assert_eq!(run(&sql, &mariadb(), &mut model()), with_column, "{sql}");
    }
}

#[test]
fn table_options_say_nothing_but_character_set_and_comment() {
    let options = [
        "ENGINE=MERGE UNION=(my, other) INSERT_METHOD=LAST",
        "AUTO_INCREMENT=7 COMMENT='CHARSET=latin1' ROW_FORMAT=FIXED",
        "DATA DIRECTORY='/x' COMPRESSION=\"zlib\" NEW_OPTION 5",
        "PARTITION BY HASH (id) PARTITIONS 2",
        "PARTITION BY LIST (id) SUBPARTITION BY HASH (id) (PARTITION p VALUES IN (1, NULL) COMMENT='CHARSET latin1')",
        "START TRANSACTION",
        "AS SELECT 1 AS c COLLATE latin1_bin",
        "REPLACE SELECT 1",
        "IGNORE (SELECT 1)",
        "WITH x AS (SELECT 1) SELECT * FROM x",
    ];
    for option in options {
        let sql = format!("CREATE TABLE t (c TEXT) {option}");
        assert_eq!(
            run(&sql, &mysql(), &mut model()),
            "CREATE gold.t utf8mb4 [] c TEXT utf8mb4",
            "{sql}"
        );
    }
}

#[test]
fn any_word_is_a_name() {
    let words = [
        "position",
        "sum",
        "url",
        "auto",
        "vector",
        "comment",
        "first",
        "after",
        "value",
        "serial",
        "key_",
        "partition_",
        "add_",
        "system",
        "period",
        "column_format",
        "storage",
        "visible",
        "with_",
        "year",
        "date",
        "enum",
        "no",
        "end",
        "begin",
        "_u",
        "$v",
        "1a",
        "größe",
        "价格",
    ];
    for word in words {
        let sql = format!("CREATE TABLE {word} (id INT PRIMARY KEY, {word} INT, KEY (id, {word}))");
        let created = format!("CREATE gold.{word} utf8mb4 [id] id INT!; {word} INT");
        let alter = format!("ALTER TABLE {word} ADD z INT AFTER {word}, MODIFY {word} DATE FIRST");
        let moved = format!("ALTER gold.{word} utf8mb4 [id] {word} DATE; id INT!; z INT");
        story(&mysql(), &[(&sql, &created), (&alter, &moved)]);
        let added = format!("ALTER TABLE pre ADD {word} INT, ADD COLUMN (y INT)");
        let expected = format!("ALTER gold.pre utf8mb4 [id] id INT!; a INT; {word} INT; y INT");
        story(&mysql(), &[(&added, &expected)]);
    }
}

#[test]
fn records_hold_the_statement_from_its_first_to_its_last_token() {
    let cases = [
        ("  /* x */ CREATE TABLE t (a INT /* y */) ; ", "CREATE TABLE t (a INT /* y */)"),
        ("/*!50001 CREATE TABLE t (a INT) */", "CREATE TABLE t (a INT)"),
        (
            "CREATE TABLE t (a INT) /*!50100 PARTITION BY HASH (a) */",
            "CREATE TABLE t (a INT) /*!50100 PARTITION BY HASH (a)",
        ),
        ("SET STATEMENT max_statement_time=10 FOR ALTER TABLE pre FORCE", "ALTER TABLE pre FORCE"),
        (
            "ALTER DATABASE gold /*!40100 CHARSET latin1 */",
            "ALTER DATABASE gold /*!40100 CHARSET latin1 */",
        ),
        ("/* x */ CREATE INDEX i ON pre (a) ; ", "CREATE INDEX i ON pre (a)"),
        ("DROP TABLE pre cascade # x", "DROP TABLE `gold`.`pre` cascade"),
        ("DROP TABLES IF EXISTS other.`a``b`", "DROP TABLE IF EXISTS `other`.`a``b`"),
        ("RENAME TABLE pre TO other.x;", "RENAME TABLE pre TO other.x"),
        ("CREATE UNIQUE INDEX i ON pre (a)", "CREATE UNIQUE INDEX i ON pre (a)"),
    ];
    for (sql, ddl) in cases {
        let events = apply_statement(sql, &mariadb(), &mut model()).unwrap();
        assert_eq!(
            events.iter().map(|event| event.ddl.as_str()).collect::<Vec<_>>(),
            [ddl],
            "{sql}"
        );
    }
    let events =
        apply_statement("rename  table pre to p, /* x */ p  TO q", &mysql(), &mut model()).unwrap();
    let ddl: Vec<&str> = events.iter().map(|event| event.ddl.as_str()).collect();
    assert_eq!(ddl, ["rename  table pre to p", "rename  table p  TO q"]);
    assert!(
        events.iter().all(|event| event.kind == DdlEventKind::Alter && event.tables.len() == 2)
    );
}

#[test]
fn what_is_recorded_applies_again_when_history_is_read() {
    // Debezium cuts CREATE from CREATE UNIQUE INDEX, and the end of a version comment.
    story(
        &mysql(),
        &[
            (
                "CREATE TABLE t (a INT NOT NULL) /*!50100 PARTITION BY HASH (a)",
                "CREATE gold.t utf8mb4 [] a INT!",
            ),
            ("UNIQUE INDEX ub ON t (a DESC)", "ALTER gold.t utf8mb4 [a] a INT!"),
            ("CREATE UNIQUE INDEX uc ON t (a)", "Other gold"),
        ],
    );
}

#[test]
fn statements_that_are_ignored_give_no_event() {
    for sql in [
        "BEGIN",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (1)",
        "GRANT ALL ON *.* TO u",
        "CREATE VIEW v AS SELECT 1",
    ] {
        assert_ne!(classify(sql), StatementClass::Ddl, "{sql}");
        assert_eq!(run(sql, &mysql(), &mut model()), "", "{sql}");
    }
}

#[test]
fn definitions_of_a_later_time_make_clauses_no_ops() {
    let ahead = DdlContext { definitions_are_ahead: true, ..mysql() };
    let unchanged = "ALTER gold.pre utf8mb4 [id] id INT!; a INT";
    let cases = [
        ("ALTER TABLE pre ADD a BIGINT FIRST", unchanged),
        ("ALTER TABLE pre DROP gone", unchanged),
        ("ALTER TABLE pre RENAME COLUMN old TO a", unchanged),
        ("ALTER TABLE pre CHANGE old a BIGINT", "ALTER gold.pre utf8mb4 [id] id INT!; a BIGINT"),
        ("ALTER TABLE pre ALTER gone SET DEFAULT 1", unchanged),
        ("ALTER TABLE pre MODIFY a BIGINT", "ALTER gold.pre utf8mb4 [id] id INT!; a BIGINT"),
        (
            "ALTER TABLE pre ADD b INT AFTER gone",
            "ALTER gold.pre utf8mb4 [id] id INT!; a INT; b INT",
        ),
        ("ALTER TABLE pre DROP PRIMARY KEY, ADD PRIMARY KEY (gone, id)", unchanged),
        ("ALTER TABLE pre CONVERT TO CHARACTER SET utf8mb4", unchanged),
        ("CREATE TABLE pre (x INT)", "CREATE gold.pre utf8mb4 [id] id INT!; a INT"),
        ("RENAME TABLE old TO pre", "ALTER gold.old -> gold.pre utf8mb4 [id] id INT!; a INT"),
        ("RENAME TABLE old TO gone", "Alter gold"),
        ("DROP TABLE gone", "DROP gold.gone"),
    ];
    for (sql, expected) in cases {
        story(&ahead, &[(sql, expected)]);
    }
}

#[test]
fn names_in_other_case_are_the_same_table_when_the_server_says_so() {
    let mut tables = Tables::new(true);
    for (sql, expected) in [
        ("CREATE TABLE T1 (Id INT PRIMARY KEY)", "CREATE gold.T1 - [Id] Id INT!"),
        ("ALTER TABLE t1 ADD b INT AFTER ID", "ALTER gold.T1 - [Id] Id INT!; b INT"),
        ("ALTER TABLE GOLD.t1 DROP B", "ALTER gold.T1 - [Id] Id INT!"),
        ("RENAME TABLE t1 TO T2", "ALTER gold.t1 -> gold.T2 - [Id] Id INT!"),
        ("DROP TABLE t2", "DROP gold.t2"),
    ] {
        assert_eq!(run(sql, &mysql(), &mut tables), expected, "{sql}");
    }
    assert!(tables.is_empty());
}

// Helpers.

/// `name TYPE(length,scale) charset`, then `!` for NOT NULL, `A` for AUTO_INCREMENT, `=x` for a default.
fn show_column(column: &Column) -> String {
    let mut text = format!("{} {}", column.name, column.type_name);
    match (column.length, column.scale) {
        (Some(length), Some(scale)) => text += &format!("({length},{scale})"),
        (Some(length), None) => text += &format!("({length})"),
        (None, _) => {}
    }
    if let Some(charset) = &column.charset {
        text += &format!(" {charset}");
    }
    if !column.optional {
        text += "!";
    }
    if column.auto_incremented && column.generated {
        text += " A";
    }
    if let DefaultValue::Expression(default) = &column.default {
        text += &format!(" ={default}");
    }
    text
}

/// `db.table charset [key] column; column`.
fn show_table(table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(show_column).collect();
    let charset = table.default_charset.as_deref().unwrap_or("-");
    format!("{} {charset} [{}] {}", table.id, table.primary_key.join(","), columns.join("; "))
}

fn show_event(event: &DdlEvent) -> String {
    if event.changes.is_empty() {
        return format!("{:?} {}", event.kind, event.database);
    }
    let changes: Vec<String> = event
        .changes
        .iter()
        .map(|change| match change {
            TableChange::Create(table) => format!("CREATE {}", show_table(table)),
            TableChange::Alter { table, previous: None } => format!("ALTER {}", show_table(table)),
            TableChange::Alter { table, previous: Some(previous) } => {
                format!("ALTER {previous} -> {}", show_table(table))
            }
            TableChange::Drop(id) => format!("DROP {id}"),
        })
        .collect();
    changes.join(" + ")
}

fn run(sql: &str, context: &DdlContext, tables: &mut Tables) -> String {
    match apply_statement(sql, context, tables) {
        Ok(events) => events.iter().map(show_event).collect::<Vec<_>>().join(" | "),
        Err(error) => format!("error: {error}"),
    }
}

/// Databases `gold` and `other` in utf8mb4, a table `pre`.
fn model() -> Tables {
    let mut tables = Tables::new(false);
    tables.set_server_charset(Some("utf8mb4".to_owned()));
    for database in ["gold", "other"] {
        tables.set_database_charset(database, Some("utf8mb4".to_owned()));
    }
    let created = run(
        "CREATE TABLE gold.pre (id INT PRIMARY KEY, a INT)",
        &DdlContext::default(),
        &mut tables,
    );
    assert_eq!(created, "CREATE gold.pre utf8mb4 [id] id INT!; a INT");
    tables
}

fn mysql() -> DdlContext {
    DdlContext::in_database("gold")
}

fn mariadb() -> DdlContext {
    DdlContext { flavor: Flavor::MariaDb, ..mysql() }
}

/// Runs statements in order on [`model`]. A statement on a table named in double quotes has ANSI_QUOTES.
fn story(context: &DdlContext, steps: &[(&str, &str)]) {
    let mut tables = model();
    for (sql, expected) in steps {
        let ansi = DdlContext { sql_mode: SqlMode(SqlMode::ANSI_QUOTES), ..context.clone() };
        let context = if sql.contains("TABLE \"") { &ansi } else { context };
        assert_eq!(run(sql, context, &mut tables), *expected, "{sql}");
    }
}
