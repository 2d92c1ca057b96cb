DROP DATABASE IF EXISTS shop;
CREATE DATABASE shop CHARACTER SET utf8mb4;
USE shop;
CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, email VARCHAR(80), credit DECIMAL(10,2) DEFAULT 0.00);
CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, placed DATETIME(3) NOT NULL, state ENUM('new','paid','sent') NOT NULL DEFAULT 'new', items JSON);
INSERT INTO customers VALUES (1,'Ada','ada@example.org',10.50),(2,'Grace',NULL,0.00),(3,'Édouard','e@example.org',99.99);
