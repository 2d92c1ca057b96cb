USE gold;
INSERT INTO orders_1 VALUES (2,'d');
INSERT INTO noise VALUES (2);
BEGIN; UPDATE orders_1 SET id=3 WHERE id=2; DELETE FROM noise; DELETE FROM orders_2; COMMIT;
UPDATE orders_3 SET v='e';
DELETE FROM orders_3;
UPDATE plain SET n=2;
DELETE FROM plain;
