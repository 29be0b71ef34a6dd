//! Metrics in the types of OTLP. Names, labels and units stay those of `/metrics`, so that a dashboard shows the same
//! whichever way they came.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Exemplar, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, exemplar, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

use super::exposition::{self, Family, Sample};

/// Nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Since when counters count.
    pub(super) start: u64,
    /// When the numbers were read.
    pub(super) now: u64,
}

/// The request with all metrics of a text in the `OpenMetrics` format.
pub(super) fn request(text: &str, times: Times) -> ExportMetricsServiceRequest {
    let metrics = exposition::read(text).iter().filter_map(|family| converted(family, times)).collect();
    let scope = InstrumentationScope { name: "wasmspawner".to_owned(), ..InstrumentationScope::default() };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", "wasmspawner"),
                    attribute("service.version", env!("CARGO_PKG_VERSION")),
                ],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() }],
            ..ResourceMetrics::default()
        }],
    }
}

fn converted(family: &Family, times: Times) -> Option<Metric> {
    let cumulative = AggregationTemporality::Cumulative.into();
    let points = || family.samples.iter().map(|sample| number(sample, times)).collect::<Vec<_>>();
    let (suffix, data) = match family.kind.as_str() {
        "counter" => {
            let sum = Sum { data_points: points(), aggregation_temporality: cumulative, is_monotonic: true };
            ("_total", metric::Data::Sum(sum))
        }
        "histogram" => {
            let data_points = histograms(&family.samples, times);
            ("", metric::Data::Histogram(Histogram { data_points, aggregation_temporality: cumulative }))
        }
        "info" => ("_info", metric::Data::Gauge(Gauge { data_points: points() })),
        _ => ("", metric::Data::Gauge(Gauge { data_points: points() })),
    };
    (!family.samples.is_empty()).then(|| Metric {
        name: format!("{}{suffix}", family.name),
        description: family.help.clone(),
        unit: unit(&family.unit).to_owned(),
        data: Some(data),
        ..Metric::default()
    })
}

/// The unit as the Unified Code for Units of Measure writes it.
fn unit(unit: &str) -> &str {
    match unit {
        "seconds" => "s",
        "bytes" => "By",
        other => other,
    }
}

fn number(sample: &Sample, times: Times) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(&sample.labels),
        start_time_unix_nano: times.start,
        time_unix_nano: times.now,
        value: Some(number_data_point::Value::AsDouble(sample.value)),
        ..NumberDataPoint::default()
    }
}

/// The histograms among the samples, one for each combination of the labels other than `le`.
fn histograms(samples: &[Sample], times: Times) -> Vec<HistogramDataPoint> {
    let mut points: BTreeMap<BTreeMap<String, String>, HistogramDataPoint> = BTreeMap::new();
    for sample in samples {
        let mut labels = sample.labels.clone();
        let bound = labels.remove("le");
        let point = points.entry(labels.clone()).or_insert_with(|| HistogramDataPoint {
            attributes: attributes(&labels),
            start_time_unix_nano: times.start,
            time_unix_nano: times.now,
            ..HistogramDataPoint::default()
        });
        match sample.suffix.as_str() {
            "_sum" => point.sum = Some(sample.value),
            "_count" => point.count = whole(sample.value),
            _ => add_bucket(point, bound.as_deref(), sample),
        }
    }
    points.into_values().collect()
}

/// Adds the next bucket. In the text each counts those before it as well, and the last one has no bound.
fn add_bucket(point: &mut HistogramDataPoint, bound: Option<&str>, sample: &Sample) {
    let before: u64 = point.bucket_counts.iter().sum();
    point.bucket_counts.push(whole(sample.value).saturating_sub(before));
    point
        .explicit_bounds
        .extend(bound.and_then(|bound| bound.parse().ok()).filter(|bound: &f64| bound.is_finite()));
    point.exemplars.extend(sample.exemplar.as_ref().map(|found| Exemplar {
        // The time is not known: the text does not say it.
        trace_id: found.labels.get("trace_id").and_then(|digits| bytes(digits)).unwrap_or_default(),
        value: Some(exemplar::Value::AsDouble(found.value)),
        ..Exemplar::default()
    }));
}

/// A count as a whole number: the text writes it as one.
fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are whole, never negative, and far below 2^53"
    )]
    {
        value as u64
    }
}

/// The bytes that hexadecimal digits stand for.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn attributes(labels: &BTreeMap<String, String>) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = any_value::Value::StringValue(value.to_owned());
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { start: 1, now: 2 };

    fn metrics(text: &str) -> Vec<Metric> {
        request(text, TIMES).resource_metrics.remove(0).scope_metrics.remove(0).metrics
    }

    #[test]
    fn a_histogram_keeps_its_bounds_its_counts_and_its_exemplar() {
        let found = metrics(
            r#"# HELP t Time.
# TYPE t_seconds histogram
# UNIT t_seconds seconds
t_seconds_sum{a="x"} 9.5
t_seconds_count{a="x"} 5
t_seconds_bucket{le="1.0",a="x"} 2
t_seconds_bucket{le="2.5",a="x"} 4 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 2.25
t_seconds_bucket{le="+Inf",a="x"} 5
"#,
        );
        let metric = found.iter().find(|metric| metric.name == "t_seconds").unwrap();
        assert_eq!(metric.unit, "s");
        let Some(metric::Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        let [point] = histogram.data_points.as_slice() else { panic!("{histogram:?}") };
        assert_eq!((point.sum, point.count), (Some(9.5), 5));
        assert_eq!(
            (point.explicit_bounds.as_slice(), point.bucket_counts.as_slice()),
            (&[1.0, 2.5][..], &[2, 2, 1][..])
        );
        assert_eq!(point.exemplars[0].trace_id[..2], [0x0a, 0xf7]);
        assert_eq!(point.attributes, [attribute("a", "x")]);
    }

    #[test]
    fn a_counter_is_a_sum_and_keeps_its_name() {
        let found = metrics("# HELP c Count.\n# TYPE c counter\nc_total{a=\"x\"} 3\nc_total{a=\"y\"} 0\n");
        assert_eq!(found[0].name, "c_total");
        let Some(metric::Data::Sum(sum)) = &found[0].data else { panic!("{found:?}") };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points.len(), 2);
        assert_eq!(sum.data_points[0].value, Some(number_data_point::Value::AsDouble(3.0)));
    }
}
