//! Tests on real servers. One file per subject; servers are shared where the subject allows.
#![cfg(test)]

mod campaign;
mod cases;
mod compression;
mod damage;
mod data;
mod decode;
mod embedding;
mod engine_cases;
mod errors;
mod experiment;
mod goldens;
mod history;
mod history_cases;
mod idle;
mod incident;
mod incident_refresh;
mod metadata;
mod model;
mod objects;
mod offsets;
mod refresh;
mod refresh_cases;
mod refresh_guards;
mod refresh_lost;
mod restarts;
mod runbooks;
mod select;
mod servers;
mod snapshot_cases;
mod story;
mod tables;
mod tls;
mod uniform;
mod values;
mod xa;
