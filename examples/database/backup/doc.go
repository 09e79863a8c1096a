// SPDX-License-Identifier: Apache-2.0

// Package backup is the external system that stores backups: an interface for the controller, and two implementations.
// [Directory] stores backups as files and replaces a real backup service. [Fake] is for tests.
package backup
