// SPDX-License-Identifier: Apache-2.0

// Package backup is the system outside of the cluster that keeps backups: an interface for the controller, and two
// implementations. [Directory] keeps backups as files and stands for a real backup service. [Fake] is for tests.
package backup
