USE gold;
INSERT INTO a VALUES (60,'pre',1);
SET gtid_next='AUTOMATIC:mytag';
INSERT INTO a VALUES (61,'tagged',1);
INSERT INTO a VALUES (62,'tagged2',1);
SET gtid_next='AUTOMATIC';
INSERT INTO a VALUES (63,'post',1);
