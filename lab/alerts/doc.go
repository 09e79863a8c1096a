// SPDX-License-Identifier: Apache-2.0

// Package alerts checks the alert rules and the dashboard of the guide on operating with the parser of Prometheus.
package alerts
