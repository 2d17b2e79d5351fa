//! Events to the policy, its decisions to the pages.
