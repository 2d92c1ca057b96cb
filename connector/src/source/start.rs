//! Before the log is read: whether a snapshot comes first, whether the server is fit, and the definitions at the offset.

use std::sync::Arc;

use holdfast_history::offset::{LogPlace, SnapshotKind, SourceOffset};
use holdfast_history::recover::{Recovered, ReplayGuard};
use holdfast_history::{Ahead, Tables};
use holdfast_snapshot::{ServerFacts, ServerFlavor};
use mysql_async::Conn;

use super::failover::{check_followed, check_not_ahead, ends_before};
use super::{Source, StreamStart, server_options};
use crate::assemble::Origins;
use crate::available::check_available;
use crate::config::{GuardrailAction, OnMismatch, SchemaSource, SnapshotMode};
use crate::error::Error;
use crate::offset::{Lineage, file_of};
use crate::refresh::{Refresh, RefreshOptions};
use crate::stores::{keep_checkpoint, recover};

impl Source {
    /// Whether a snapshot comes first.
    pub(super) fn wants_snapshot(&self, stored: Option<&SourceOffset>) -> Result<bool, Error> {
        let is_incomplete = |offset: &SourceOffset| offset.snapshot == Some(SnapshotKind::Initial);
        Ok(match (stored, self.config.snapshot.mode) {
            // What a redelivery begins at is complete, or is not.
            (Some(offset), _) if self.rewinds > 0 => is_incomplete(offset),
            (_, SnapshotMode::Always) => true,
            (None, SnapshotMode::Recovery) => {
                return Err(Error::Start(
                    "Could not find existing redo log information while attempting schema only recovery snapshot"
                        .to_owned(),
                ));
            }
            (stored, SnapshotMode::ConfigurationBased(configured)) => match stored {
                _ if configured.data => true,
                Some(offset) => configured.schema && is_incomplete(offset),
                None if configured.schema => true,
                None => {
                    return Err(Error::Start(
                        "no offset is stored, and snapshot.mode=configuration_based reads neither definitions nor rows; \
                         set snapshot.mode.configuration.based.snapshot.schema or .snapshot.data"
                            .to_owned(),
                    ));
                }
            },
            (None, _) => true,
            (
                Some(offset),
                SnapshotMode::Initial
                | SnapshotMode::InitialOnly
                | SnapshotMode::NoData
                | SnapshotMode::WhenNeeded
                | SnapshotMode::Custom,
            ) => is_incomplete(offset),
            (Some(_), SnapshotMode::Recovery) => false,
        })
    }

    /// Rebuilds the schema history at the stored offset, where the mode says so. The offset stays: a snapshot that reads
    /// definitions alone may never move it, or what is between it and the head is lost.
    pub(super) async fn rebuild(&mut self, offset: &SourceOffset) -> Result<(), Error> {
        let wanted = match self.config.snapshot.mode {
            SnapshotMode::Recovery => true,
            SnapshotMode::ConfigurationBased(configured) => {
                configured.schema || configured.on_schema_error && !self.history.exists().await?
            }
            SnapshotMode::Initial
            | SnapshotMode::InitialOnly
            | SnapshotMode::Always
            | SnapshotMode::NoData
            | SnapshotMode::WhenNeeded
            | SnapshotMode::Custom => false,
        };
        if !wanted || self.rewinds > 0 || offset.snapshot == Some(SnapshotKind::Initial) {
            return Ok(());
        }
        self.rebuild_at(offset).await
    }

    pub(super) async fn rebuild_at(&self, offset: &SourceOffset) -> Result<(), Error> {
        let options = RefreshOptions {
            // A replica that lags has the definitions of its own log all the same, and the log is looked at.
            allow_replica_lag: true,
            set_aside_damaged: self.rebuilds_what_is_damaged(),
            ..RefreshOptions::default()
        };
        self.refresh_at(offset.clone(), &options).await
    }

    /// Whether the mode says that a history which can't be read is begun anew.
    pub(super) fn rebuilds_what_is_damaged(&self) -> bool {
        match self.config.snapshot.mode {
            SnapshotMode::Recovery => true,
            SnapshotMode::ConfigurationBased(configured) => configured.on_schema_error,
            SnapshotMode::Initial
            | SnapshotMode::InitialOnly
            | SnapshotMode::Always
            | SnapshotMode::NoData
            | SnapshotMode::WhenNeeded
            | SnapshotMode::Custom => false,
        }
    }

    pub(crate) async fn refresh_at(
        &self,
        offset: SourceOffset,
        options: &RefreshOptions,
    ) -> Result<(), Error> {
        let (config, history) = (Arc::clone(&self.config), Arc::clone(&self.history));
        let place = (offset.file.clone(), offset.pos);
        let report = async {
            Box::pin(Refresh::prepare_at(config, history, offset, options)).await?.apply().await
        };
        let report = self.signals.counters.refreshed(place, report.await)?;
        for warning in &report.warnings {
            tracing::warn!(warning, "while the schema history was rebuilt");
        }
        tracing::info!("schema history at the offset:\n{}", report.to_text());
        Ok(())
    }

    /// `holdfast.history.on.mismatch=refresh`: whether the definitions were rebuilt at the frontier, from where everything
    /// is given out again.
    pub(super) async fn repaired(&mut self, error: &Error) -> bool {
        let repairs = self.config.history.on_mismatch == OnMismatch::Refresh;
        let table = if let Error::Mismatch(mismatch) = error {
            &mismatch.table
        } else if let Error::UnknownTable { table, .. } = error {
            table
        } else {
            return false;
        };
        let frontier = self.committer.ledger.lock().frontier().clone();
        if !repairs || !frontier.is_known() || frontier.snapshot.is_some() {
            return false;
        }
        let offset = frontier.to_source_offset();
        if self.repaired_at.as_ref() == Some(&offset) {
            tracing::error!("the definitions were rebuilt at this place already, and do not fit");
            return false;
        }
        tracing::warn!(error = error.chain(), "rebuilding the schema history at the frontier");
        let options = RefreshOptions { tables: vec![table.clone()], ..RefreshOptions::default() };
        match self.refresh_at(offset.clone(), &options).await {
            Ok(()) => {
                self.repaired_at = Some(offset);
                self.signals.redeliver();
                true
            }
            Err(refused) => {
                tracing::error!(
                    error = refused.chain(),
                    "the schema history could not be rebuilt at the frontier"
                );
                false
            }
        }
    }

    /// Connects to the server and makes sure that it is fit.
    pub(super) async fn server(&self) -> Result<(Conn, ServerFacts), Error> {
        let mut conn = holdfast_snapshot::connect(&server_options(&self.config)).await?;
        let facts = holdfast_snapshot::facts(&mut conn).await?;
        self.check_server(&facts)?;
        Ok((conn, facts))
    }

    /// Preconditions that would otherwise lose changes in silence.
    pub(super) fn check_server(&self, facts: &ServerFacts) -> Result<(), Error> {
        let endpoint = self.endpoint();
        let (family, class, set) = match facts.flavor {
            ServerFlavor::MySql => {
                ("MySQL", "io.debezium.connector.mysql.MySqlConnector", "SET PERSIST")
            }
            // It has no SET PERSIST.
            ServerFlavor::MariaDb => {
                ("MariaDB", "io.debezium.connector.mariadb.MariaDbConnector", "SET GLOBAL")
            }
        };
        if (facts.flavor == ServerFlavor::MariaDb) != self.config.is_mariadb() {
            return Err(Error::Server {
                endpoint,
                what: format!(
                    "it is {family} {}, and connector.class is for the other family",
                    facts.version
                ),
                fix: format!("set connector.class={class}"),
            });
        }
        if !facts.is_on("log_bin") {
            return Err(Error::Server {
                endpoint,
                what: "it writes no binary log".to_owned(),
                fix: "start it with --log-bin".to_owned(),
            });
        }
        let mut rules = vec![("binlog_format", "ROW"), ("binlog_row_image", "FULL")];
        if self.config.history.source == SchemaSource::Metadata {
            rules.push(("binlog_row_metadata", "FULL"));
        }
        for (variable, wanted) in rules {
            let value = facts.variable(variable).unwrap_or(wanted);
            if !value.eq_ignore_ascii_case(wanted) {
                return Err(Error::Server {
                    endpoint,
                    what: format!("{variable} is {value}, not {wanted}"),
                    fix: format!(
                        "run {set} {variable}={wanted}, have it in the server's configuration too, and let all sessions \
                         reconnect"
                    ),
                });
            }
        }
        Ok(())
    }

    /// `guardrail.collections.max`.
    pub(crate) fn check_guardrail(&self, tables: &Tables) -> Result<(), Error> {
        let Some((most, action)) = self.config.guardrail else { return Ok(()) };
        let captured = tables.iter().filter(|table| self.config.tables.captures(&table.id)).count();
        if captured <= usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
        let text = format!(
            "{captured} tables are captured, more than guardrail.collections.max={most}; narrow table.include.list or \
             raise the limit"
        );
        match action {
            GuardrailAction::Warn => {
                tracing::warn!("{text}");
                Ok(())
            }
            GuardrailAction::Fail => Err(Error::Start(text)),
        }
    }

    /// Goes on from a stored offset: recovers the definitions, and makes sure that the place is still there.
    pub(super) async fn resume(
        &mut self,
        conn: &mut Conn,
        facts: &ServerFacts,
        offset: SourceOffset,
    ) -> Result<StreamStart, Error> {
        if offset.snapshot == Some(SnapshotKind::Initial) {
            return Err(Error::Start(
                "The connector previously stopped while taking a snapshot, but now the connector is configured to never \
                 allow snapshots. Reconfigure the connector to use snapshots initially or when needed."
                    .to_owned(),
            ));
        }
        file_of(&offset)?;
        if self.config.history.source == SchemaSource::Metadata {
            tracing::info!(
                "rows are read by the log's own metadata where the schema history does not say the same"
            );
        } else if !self.history.exists().await? {
            return Err(Error::Start(format!(
                "The db history topic is missing. You may attempt to recover it by reconfiguring the connector to \
                 recovery. (no schema history in {}, while there is an offset; `holdfast refresh --config FILE` \
                 rebuilds it there)",
                self.history.location()
            )));
        }
        let Recovered { tables, mut guard, report, mut ahead } =
            recover(&self.config, &*self.history, &offset, facts.lower_case_names()).await?;
        crate::metrics::recovered(&self.config.topic_prefix, &report);
        let most = self.config.history.checkpoint_records;
        if most > 0 && report.recovered - report.from_checkpoint >= most {
            let (config, history) = (&self.config, &*self.history);
            keep_checkpoint(config, history, &offset, facts.lower_case_names()).await;
        }
        self.check_guardrail(&tables)?;
        let mut elsewhere = self.is_elsewhere(facts, &offset);
        if elsewhere {
            check_followed(&self.config, facts, &offset)?;
        } else if check_followed(&self.config, facts, &offset).is_ok() {
            elsewhere = ends_before(conn, &offset).await?;
        }
        check_available(&self.config, conn, facts, &offset).await?;
        let lineage = if elsewhere {
            let place = LogPlace { file: offset.file.clone(), pos: offset.pos };
            check_not_ahead(&ahead, &place, offset.gtids.as_deref(), facts.identity())?;
            // Places of the other log mean nothing here.
            (guard, ahead) = (ReplayGuard::default(), Ahead::default());
            let lineage = self.next_lineage(facts, &offset);
            tracing::warn!(
                offset = offset.to_json(),
                server = lineage.server,
                epoch = lineage.epoch,
                "the offset is of another log; going on here by GTIDs"
            );
            lineage
        } else {
            self.lineage(facts, Some(&offset))
        };
        let origins = Origins::new(Some(report.origins));
        Ok(StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere })
    }

    /// The log that we read, as far as the stored offset knows it.
    pub(crate) fn lineage(
        &self,
        facts: &ServerFacts,
        offset: Option<&SourceOffset>,
    ) -> Arc<Lineage> {
        let ours = offset.and_then(|offset| offset.holdfast.as_ref());
        Arc::new(Lineage {
            server: self.identity(facts),
            epoch: ours.map_or(1, |ours| ours.epoch.max(1)),
            closed: ours.and_then(|ours| ours.closed.clone()),
            refresh_head: ours.and_then(|ours| ours.refresh_head.clone()),
        })
    }
}
