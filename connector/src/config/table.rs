//! What a configuration means for one table.

use holdfast_history::{Table, TableId};

use super::Config;
use crate::convert::{ColumnSelection, FieldNaming};
use crate::topic::DataTopic;

impl Config {
    /// Which columns of `table` go into `before` and `after` (`column.include.list`, `column.exclude.list`) and into
    /// the key (`message.key.columns`, else the primary key; column lists do not touch keys).
    #[must_use]
    pub fn column_selection(&self, table: &Table) -> ColumnSelection {
        let names = || table.columns.iter().map(|column| column.name.as_str());
        let kept = |name: &str| self.columns.includes(&table.id, name);
        let value = (0..)
            .zip(&table.columns)
            .filter(|(_, column)| !column.is_hidden() && kept(&column.name))
            .map(|(index, _)| index)
            .collect();
        let key = self
            .key_columns
            .of_table(&table.id, names())
            .unwrap_or_else(|| ColumnSelection::all(table).key);
        let settings = (0..)
            .zip(&table.columns)
            .filter_map(|(index, column)| Some((index, self.column_rules.of(&table.id, column)?)))
            .collect();
        ColumnSelection { value, key, settings }
    }

    /// Whether the schema history holds the definition of `table` (`schema.history.internal.store.only.captured.*`).
    pub(crate) fn wants_definition(&self, table: &TableId) -> bool {
        if self.history.only_captured_tables {
            return self.tables.captures(table);
        }
        let listed = !self.history.only_captured_databases
            || self.tables.databases.includes(&table.database);
        listed && !crate::filter::is_built_in(&table.database)
    }

    /// How the fields of records on `topic` are named (`field.name.adjustment.mode`, and the key field of the topic).
    #[must_use]
    pub fn field_naming(&self, topic: &DataTopic) -> FieldNaming {
        FieldNaming { adjustment: self.field_names, key_field: topic.key_field.clone() }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_history::schema::{Column, JdbcType};

    use super::*;
    use crate::config::tests::outcome;
    use crate::topic::NameAdjustment;

    fn config(key: &str, value: &str) -> Config {
        outcome(&[(key, value)]).unwrap()
    }

    fn table() -> Table {
        let column = |name: &str| Column::new(name, "INT", JdbcType::INTEGER);
        Table {
            id: TableId::new("gold", "t1"),
            columns: ["id", "a-b", "num"].map(column).into(),
            primary_key: vec!["id".to_owned()],
            default_charset: None,
            comment: None,
        }
    }

    #[test]
    fn column_lists_choose_the_images_and_leave_the_key() {
        for (key, value, images, keys) in [
            ("include.query", "false", &[0, 1, 2][..], &[0][..]),
            ("column.include.list", "gold.t1.num", &[2], &[0]),
            ("column.include.list", "gold.t2.num", &[], &[0]),
            ("column.exclude.list", ".*\\.id", &[1, 2], &[0]),
            ("message.key.columns", "gold.t1:num,id", &[0, 1, 2], &[2, 0]),
            ("message.key.columns", "gold.t2:num", &[0, 1, 2], &[0]),
        ] {
            let expected = ColumnSelection {
                value: images.to_vec(),
                key: keys.to_vec(),
                ..ColumnSelection::default()
            };
            assert_eq!(config(key, value).column_selection(&table()), expected, "{key}={value}");
        }
    }

    #[test]
    fn fields_are_named_as_the_configuration_and_the_topic_say() {
        let config = config("field.name.adjustment.mode", "avro_unicode");
        let mut topic = config.topics.data(&table().id).unwrap();
        topic.key_field = Some(("shard".to_owned(), "t1".to_owned()));
        let naming = config.field_naming(&topic);
        assert_eq!(
            naming,
            FieldNaming { adjustment: NameAdjustment::AvroUnicode, key_field: topic.key_field }
        );
    }
}
