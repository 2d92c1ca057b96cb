DROP DATABASE IF EXISTS gold;
CREATE DATABASE gold CHARACTER SET utf8mb4;
USE gold;
CREATE TABLE outbox (id CHAR(36) NOT NULL PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL, aggregateid VARCHAR(255) NOT NULL, type VARCHAR(255) NOT NULL, payload JSON);
CREATE TABLE mail (id BIGINT NOT NULL PRIMARY KEY, aggregatetype VARCHAR(50) NOT NULL, aggregateid INT, type VARCHAR(50), payload TEXT);
INSERT INTO outbox VALUES ('a1','order','7','created','{"id": 7, "ok": true}');
INSERT INTO mail VALUES (1,'welcome',5,'x','{"to": "a@b", "cc": null}');
