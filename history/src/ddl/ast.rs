//! Statements as far as the table model is concerned. Names are as written, without quotes.

use crate::schema::TableId;

/// A parsed statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text from the first to the last token, as Debezium reports it.
    pub(crate) ddl: String,
    /// The text from the first token to its end, which Debezium reports for a statement without effect.
    pub(crate) raw: String,
    pub(crate) action: Action,
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Touched {
    /// Tables whose definitions it may change, by all their names, before and after.
    pub tables: Vec<TableId>,
    /// Databases all of whose tables it may change.
    pub databases: Vec<String>,
    /// Whether it creates its table, whatever was there before.
    pub creates: bool,
}

impl Statement {
    /// The tables whose definitions the statement may change. `database` is the session's. Names without a database in a
    /// session without one are left out.
    #[must_use]
    pub fn touched(&self, database: Option<&str>) -> Touched {
        let mut touched = Touched::default();
        let mut add = |name: &Name| {
            if let Some(database) = name.database.as_deref().or(database) {
                touched.tables.push(TableId::new(database, name.table.as_str()));
            }
        };
        match &self.action {
            Action::CreateTable(create) => {
                add(&create.name);
                touched.creates = !create.if_not_exists;
            }
            Action::CreateLike { name, if_not_exists, .. } => {
                add(name);
                touched.creates = !if_not_exists;
            }
            Action::AlterTable(alter) => {
                if alter.clauses.iter().any(Clause::has_effect) {
                    add(&alter.name);
                    alter.clauses.iter().for_each(|clause| clause.other_tables(&mut add));
                }
            }
            Action::DropTables(drop) => drop.names.iter().for_each(add),
            Action::RenameTables(pairs) => {
                for pair in pairs {
                    add(&pair.from);
                    add(&pair.to);
                }
            }
            Action::CreateUniqueIndex { table, .. } => add(table),
            Action::DropDatabase { name } => touched.databases.push(name.clone()),
            Action::CreateDatabase { name, or_replace: true, .. } => {
                touched.databases.push(name.clone());
            }
            Action::Ignored
            | Action::NoEffect
            | Action::Truncate(_)
            | Action::CreateDatabase { .. }
            | Action::AlterDatabase { .. }
            | Action::Use { .. }
            | Action::Set(_)
            | Action::CreateSequence(_)
            | Action::DropSequences(_) => {}
        }
        touched
    }
}

impl Clause {
    fn has_effect(&self) -> bool {
        match &self.kind {
            ClauseKind::NoEffect => false,
            ClauseKind::List(clauses) => clauses.iter().any(Self::has_effect),
            ClauseKind::Add { .. }
            | ClauseKind::Change { .. }
            | ClauseKind::RenameColumn { .. }
            | ClauseKind::DropColumn { .. }
            | ClauseKind::SetDefault { .. }
            | ClauseKind::DropDefault { .. }
            | ClauseKind::AddPrimaryKey(_)
            | ClauseKind::AddUnique(_)
            | ClauseKind::DropPrimaryKey
            | ClauseKind::Rename(_)
            | ClauseKind::ConvertCharset(_)
            | ClauseKind::Options(_)
            | ClauseKind::AddSystemVersioning
            | ClauseKind::AddSystemPeriod
            | ClauseKind::DropSystemVersioning
            | ClauseKind::ConvertPartitionToTable(_)
            | ClauseKind::ConvertTableToPartition(_) => true,
        }
    }

    /// The tables that the clause names.
    fn other_tables(&self, add: &mut impl FnMut(&Name)) {
        if let ClauseKind::Rename(name)
        | ClauseKind::ConvertPartitionToTable(name)
        | ClauseKind::ConvertTableToPartition(name) = &self.kind
        {
            add(name);
        }
        if let ClauseKind::List(clauses) = &self.kind {
            clauses.iter().for_each(|clause| clause.other_tables(add));
        }
    }
}

/// What a statement does to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing, and no record is written.
    Ignored,
    /// Nothing, but a record is written.
    NoEffect,
    CreateTable(CreateTable),
    /// `CREATE TABLE t LIKE source`.
    CreateLike {
        name: Name,
        source: Name,
        if_not_exists: bool,
        or_replace: bool,
    },
    AlterTable(AlterTable),
    DropTables(DropTables),
    /// Pairs in order, each with the text that is reported for it.
    RenameTables(Vec<RenamePair>),
    Truncate(Name),
    /// Columns of the index; `None` when a part is an expression.
    CreateUniqueIndex {
        table: Name,
        columns: Option<Vec<String>>,
    },
    CreateDatabase {
        name: String,
        options: DatabaseOptions,
        or_replace: bool,
        if_not_exists: bool,
    },
    AlterDatabase {
        name: Option<String>,
        options: DatabaseOptions,
    },
    DropDatabase {
        name: String,
    },
    Use {
        name: String,
    },
    Set(Vec<Assignment>),
    CreateSequence(Name),
    DropSequences(Vec<Name>),
}

/// A table's name as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) database: Option<String>,
    pub(crate) table: String,
    /// Byte offset in the statement.
    pub(crate) offset: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateTable {
    pub(crate) name: Name,
    pub(crate) if_not_exists: bool,
    pub(crate) or_replace: bool,
    pub(crate) elements: Vec<Element>,
    pub(crate) options: TableOptions,
}

/// One element of a CREATE TABLE's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Element {
    Column(ColumnDefinition),
    PrimaryKey(Vec<String>),
    /// `None` when a part is an expression.
    Unique(Option<Vec<String>>),
    /// `PERIOD FOR SYSTEM_TIME (…)`: the period columns are named.
    SystemPeriod,
    /// An index, a foreign key, a check.
    Skipped,
}

/// A column's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnDefinition {
    pub(crate) name: String,
    /// Byte offset of the name.
    pub(crate) offset: usize,
    pub(crate) data_type: DataType,
    /// NOT NULL (`Some(false)`) or NULL, whichever came last.
    pub(crate) nullable: Option<bool>,
    pub(crate) default: DefaultClause,
    pub(crate) auto_increment: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub(crate) on_update: bool,
    pub(crate) primary_key: bool,
    pub(crate) unique: bool,
    /// MariaDB: `WITH SYSTEM VERSIONING` on a column makes its table versioned.
    pub(crate) system_versioning: bool,
    /// A generated column, stored or virtual.
    pub(crate) is_computed: bool,
    pub(crate) comment: Option<String>,
}

/// A column's type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DataType {
    /// Upper case, with modifiers.
    pub(crate) name: String,
    pub(crate) length: Option<i32>,
    pub(crate) scale: Option<i32>,
    pub(crate) charset: Charset,
    /// Labels as SQL text.
    pub(crate) labels: Vec<String>,
}

/// What a definition says of its character set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Charset {
    /// Nothing.
    #[default]
    Inherited,
    /// `CHARACTER SET DEFAULT`: that of the database.
    Database,
    /// Lower case.
    Named(String),
}

/// A DEFAULT clause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum DefaultClause {
    #[default]
    Absent,
    Null,
    /// The text that the model keeps.
    Text(String),
    /// A number in base 16, whose text depends on the type: its hexadecimal digits.
    Hex(String),
    /// A number in base 2, likewise: its binary digits.
    Bits(String),
    /// An expression whose value the model does not know.
    Opaque,
}

/// Options of a table, as far as they matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TableOptions {
    pub(crate) charset: Option<Charset>,
    pub(crate) comment: Option<String>,
    pub(crate) system_versioning: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AlterTable {
    pub(crate) name: Name,
    pub(crate) clauses: Vec<Clause>,
}

/// One clause of an ALTER TABLE, with its byte offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    pub(crate) offset: usize,
    pub(crate) kind: ClauseKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClauseKind {
    Add {
        column: ColumnDefinition,
        place: Place,
        if_not_exists: bool,
    },
    /// CHANGE, and MODIFY with the same name twice.
    Change {
        old: String,
        column: ColumnDefinition,
        place: Place,
        if_exists: bool,
    },
    RenameColumn {
        old: String,
        new: String,
        if_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
    },
    SetDefault {
        name: String,
        default: DefaultClause,
        if_exists: bool,
    },
    DropDefault {
        name: String,
        if_exists: bool,
    },
    AddPrimaryKey(Vec<String>),
    AddUnique(Option<Vec<String>>),
    DropPrimaryKey,
    Rename(Name),
    ConvertCharset(Charset),
    Options(TableOptions),
    AddSystemVersioning,
    AddSystemPeriod,
    DropSystemVersioning,
    /// `CONVERT PARTITION p TO TABLE t`: t is new and has the same columns.
    ConvertPartitionToTable(Name),
    /// `CONVERT TABLE t TO PARTITION …`: t is gone.
    ConvertTableToPartition(Name),
    /// Clauses in parentheses.
    List(Vec<Clause>),
    NoEffect,
}

/// Where a column is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Unchanged,
    First,
    After(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DropTables {
    pub(crate) names: Vec<Name>,
    pub(crate) if_exists: bool,
    /// RESTRICT or CASCADE, as written.
    pub(crate) behaviour: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RenamePair {
    pub(crate) from: Name,
    pub(crate) to: Name,
    /// The statement with this pair alone.
    pub(crate) ddl: String,
}

/// Options of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DatabaseOptions {
    pub(crate) charset: Option<Charset>,
}

/// One assignment of SET to something that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assignment {
    ServerCharset(Option<String>),
    DatabaseCharset(Option<String>),
    LowerCaseNames(bool),
}
