// SPDX-License-Identifier: Apache-2.0

// Package alerts checks the alert rules and the dashboard of the guide on operating, and the queries of the guide from
// the Grafana App SDK, with the parser of Prometheus.
package alerts
