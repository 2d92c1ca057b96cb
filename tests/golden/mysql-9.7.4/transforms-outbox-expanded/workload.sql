USE gold;
INSERT INTO outbox VALUES ('a2','order','8','created','{"id": 8, "total": 12.50, "lines": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2}], "none": null, "empty": [], "tags": ["a", "b"]}');
INSERT INTO outbox VALUES ('a3','order','9','created','{"big": 5000000000, "nested": {"deep": {"v": 1.5, "s": "é"}}, "list": [[1, 2], [3]]}');
INSERT INTO outbox VALUES ('a4','order','10','mixed','{"list": [1, "x"]}');
INSERT INTO outbox VALUES ('a5','order','11','mixed','{"list": [{"a": 1}, null, {"a": 2}]}');
INSERT INTO outbox VALUES ('a6','order','12','empty','{}');
INSERT INTO outbox VALUES ('a7','order','13','none',NULL);
INSERT INTO outbox VALUES ('a8','order','14','text','"just text"');
INSERT INTO mail VALUES (2,'bye',6,'t','{"a": 1.0, "b": 1e3, "c": null, "d": [null], "e": [1, null, 3]}'),(3,'bye',7,NULL,'no json'),(4,'bye',8,'u','{"x": "\\"quoted\\" \\u00e9", "y": {"z": null}}'),(5,'bye',9,'v',NULL);
