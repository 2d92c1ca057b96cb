USE gold;
BEGIN; INSERT INTO outbox VALUES ('a2','order','8','created','{"id": 8, "lines": [1.5, "x"]}',2); DELETE FROM outbox WHERE id='a2'; COMMIT;
INSERT INTO outbox VALUES ('a3','customer','9','gone',NULL,NULL);
UPDATE outbox SET n=5 WHERE id='a3';
DELETE FROM outbox;
INSERT INTO mail VALUES (1,'welcome',5,'hello',1,'first'),(2,'bye',NULL,'',2,NULL),(3,'bye',6,NULL,2,'last');
DELETE FROM mail WHERE event=1;
